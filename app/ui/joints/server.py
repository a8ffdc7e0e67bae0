"""The local server: on and off by the settings, its state always to be seen, its token to be had.

The server itself is not of the window: it is made by a function that the window is handed.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from PySide6.QtCore import Qt, Signal, Slot

from app.settings import Settings, new_token
from app.ui import notices
from app.ui.joints.joint import Joint
from app.ui.server_card import ServerCard

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow


class Server(Protocol):
    """`close` stops it, and the answers that it is writing."""

    @property
    def address(self) -> str: ...
    def close(self) -> None: ...


# (token, port, called on any thread with the answers now and since the start); OSError: no port.
MakeServer = Callable[[str, int, Callable[[int, int], None]], Server]


class ServerJoint(Joint):
    used = Signal(int, int)  # from the server's threads

    def __init__(self, window: "MainWindow") -> None:
        super().__init__(window)
        self._make: MakeServer | None = None
        self._server: Server | None = None
        self._applied: tuple[bool, int, str] = (False, 0, "")
        self._now = self._total = 0
        self.used.connect(self._on_used, Qt.ConnectionType.QueuedConnection)
        window.settings_changed.connect(self._on_settings)
        window.closing.connect(self.close)
        window.actions_["server"].triggered.connect(self.show_card)
        window.sidebar.server_requested.connect(self.show_card)

    def serve_with(self, make: MakeServer) -> None:
        """The engine is there: what the settings want is done from now on."""
        self._make = make
        self._on_settings(self.window.settings())

    @property
    def address(self) -> str:
        """Empty while nothing listens."""
        return self._server.address if self._server is not None else ""

    @Slot(object)
    def _on_settings(self, settings: Settings) -> None:
        wanted = (settings.server_enabled, settings.server_port, settings.server_token)
        if wanted == self._applied or self._make is None:
            return
        self._applied = wanted
        self.close()
        if settings.server_enabled:
            self._open(settings.server_token, settings.server_port)
        self._show()

    def _open(self, token: str, port: int) -> None:
        assert self._make is not None
        try:
            self._server = self._make(token, port, self.used.emit)
        except OSError as error:
            if self.chat is not None:
                self.chat.show_notice(notices.server_cannot_start(port, error))

    @Slot()
    def close(self) -> None:
        server, self._server = self._server, None
        self._now = self._total = 0
        if server is not None:
            server.close()

    @Slot()
    def make_token(self) -> None:
        """The old one is worth nothing from now on."""
        settings = replace(self.window.settings(), server_token=new_token())
        self.window.change_settings(settings)

    @Slot(bool)
    def set_enabled(self, is_enabled: bool) -> None:
        self.window.change_settings(replace(self.window.settings(), server_enabled=is_enabled))

    @Slot(int, int)
    def _on_used(self, now: int, total: int) -> None:
        if self._server is not None:
            self._now, self._total = now, total
            self._show()

    def _show(self) -> None:
        self.window.sidebar.set_server(self.address, is_used=self._now > 0, total=self._total)

    @Slot()
    def show_card(self) -> None:
        card = ServerCard(self.address, self.window.settings().server_token)
        card.switched.connect(self.set_enabled)
        card.token_wanted.connect(self.make_token)
        card.closed.connect(card.deleteLater)
        is_seen = self.window.sidebar.server_row.isVisible()
        opener = self.window.sidebar.server_row if is_seen else self.window.page.composer
        card.open_from(opener, above=True)

    def act(self, name: str) -> bool:
        if name == "server":
            self.show_card()
        return name == "server"
