"""The window: holds panels, menus and what is the case. What they do with each other is in joints.

Holds no chat and no model itself. A new feature is a new joint, see joints/joint.py.
"""

from dataclasses import replace

from PySide6.QtCore import QByteArray, Qt, Signal, Slot
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QCloseEvent,
    QGuiApplication,
    QKeyEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QMainWindow, QStackedWidget

from app import paths
from app.settings import Settings, completed
from app.ui import notices
from app.ui.actions import Actions
from app.ui.chat_controller import ChatController
from app.ui.chat_page import ChatPage
from app.ui.chat_state import ChatState
from app.ui.drop_target import DropTarget
from app.ui.inspector import Inspector
from app.ui.items import Notice
from app.ui.joints.attachments import AttachmentJoint
from app.ui.joints.bin import BinJoint
from app.ui.joints.branches import BranchesJoint
from app.ui.joints.chats import ChatJoint
from app.ui.joints.compare import CompareJoint
from app.ui.joints.context import ContextJoint
from app.ui.joints.exchange import ExchangeJoint
from app.ui.joints.find import FindJoint
from app.ui.joints.help import HelpJoint
from app.ui.joints.library import LibraryJoint
from app.ui.joints.models import ModelJoint
from app.ui.joints.palette import PaletteJoint
from app.ui.joints.presets import PresetsJoint
from app.ui.joints.server import ServerJoint
from app.ui.joints.tabs import TabsJoint
from app.ui.joints.temporary import TemporaryJoint
from app.ui.joints.tokens import TokensJoint
from app.ui.joints.view import ViewJoint
from app.ui.model_controller import ModelController
from app.ui.panels import Panels
from app.ui.problem_page import ProblemPage
from app.ui.sidebar import APP_NAME, Sidebar
from app.ui.undo_toast import UndoToast

SMALLEST = (720, 480)


class MainWindow(QMainWindow):
    settings_changed = Signal(object)  # Settings
    closing = Signal()
    store_action = Signal(str)  # a way out of chats that can't be opened

    def __init__(self, settings: Settings, folders: paths.Folders) -> None:
        super().__init__()
        self._settings, self.folders = settings, folders
        self._chat: ChatController | None = None
        self.state = ChatState()
        self._must_ask = True
        self.setWindowTitle(APP_NAME)
        self.setMinimumSize(*SMALLEST)
        self.sidebar, self.page, self.inspector = Sidebar(), ChatPage(), Inspector()
        self.center = QStackedWidget()  # the chat, and pages that take its place
        self.center.addWidget(self.page)
        self.panels = Panels(self.sidebar, self.center, self.inspector)
        self.problem = ProblemPage()
        self.drops = DropTarget(self, self.page)
        self.undo = UndoToast(self, self.sidebar.models_row)
        self._pages = QStackedWidget()
        self._pages.addWidget(self.panels)
        self._pages.addWidget(self.problem)
        self.setCentralWidget(self._pages)
        self.actions_ = Actions(self)
        self.menuBar().setVisible(self.menuBar().isNativeMenuBar())
        self.actions_["quit"].triggered.connect(self.close)
        self.page.notice_action.connect(self.act)
        self.problem.action.connect(self.act)
        self._make_joints()
        self._restore()
        self.panels.changed.emit()
        self.set_state(self.state)

    def _make_joints(self) -> None:
        self.chats, self.models, self.view = ChatJoint(self), ModelJoint(self), ViewJoint(self)
        self.server = ServerJoint(self)
        self.joints = (
            self.chats,
            self.models,
            self.view,
            BranchesJoint(self),
            ContextJoint(self),
            CompareJoint(self),
            LibraryJoint(self),
            TemporaryJoint(self),
            BinJoint(self),
            ExchangeJoint(self),
            FindJoint(self),
            HelpJoint(self),
            PaletteJoint(self),
            AttachmentJoint(self),
            TokensJoint(self),
            TabsJoint(self),
            PresetsJoint(self),
            self.server,
        )

    # ---- joining
    def open_chats(self, chat: ChatController, models: ModelController) -> None:
        """From now on the window shows these chats and models."""
        self._chat = chat
        for joint in self.joints:
            joint.open(chat, models)
        chat.start()
        self._pages.setCurrentWidget(self.panels)
        self.set_state(chat.state)
        self.page.composer.field.setFocus()

    def show_problem(self, notice: Notice) -> None:
        """In place of the chats, when there are none to show."""
        self.problem.set_notice(notice)
        self._pages.setCurrentWidget(self.problem)
        self.set_state(replace(self.state, is_store_open=False))

    @Slot(str)
    def open_model(self, path: str) -> None:
        self.models.open_model(path)

    # ---- following what is the case
    @Slot(object)
    def set_state(self, state: ChatState) -> None:
        old, self.state = self.state, state
        self.page.set_state(state)
        self.setWindowTitle(f"{state.title} - {APP_NAME}" if state.title else APP_NAME)
        for joint in self.joints:
            joint.follow(old, state)

    @Slot(str)
    def act(self, name: str) -> None:
        """A way out of a notice."""
        if name in ("retry-store", "set-store-aside"):
            self.store_action.emit(name)
        elif name == "quit":
            self.close()
        else:
            any(joint.act(name) for joint in self.joints)

    @Slot(str)
    def announce(self, text: str) -> None:
        """To screen readers."""
        if QAccessible.isActive():
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, text))

    @Slot(object)
    def show_exception(self, error: Exception) -> None:
        """What nobody expected; the log has it."""
        if self._chat is not None:
            self._chat.show_notice(notices.uncaught(error))

    @Slot(object)
    def change_settings(self, settings: Settings) -> None:
        """What concerns the window acts at once; saving is up to who listens."""
        old, self._settings = self._settings, completed(settings)
        if self._settings != old:
            self.settings_changed.emit(self._settings)

    def settings(self) -> Settings:
        return self._settings

    @Slot()
    def restyle(self) -> None:
        """After the theme or the text size was applied."""
        self.page.restyle()
        self.sidebar.update()
        self.inspector.update()
        for joint in self.joints:
            joint.restyle()

    @Slot()
    def come_forward(self) -> None:
        """Asked for by a second start."""
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.show()
        self.raise_()
        self.activateWindow()

    # ---- events
    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Keys that nothing inside wanted: Esc closes or stops, letters go to the message."""
        plain = event.modifiers() in (
            Qt.KeyboardModifier.NoModifier,
            Qt.KeyboardModifier.ShiftModifier,
        )
        if event.key() == Qt.Key.Key_Escape and plain:
            self._escape()
        elif event.key() == Qt.Key.Key_F10:
            self.view.show_menu()
        elif plain and event.text().isprintable() and event.text():
            self.page.composer.insert_text(event.text())
        else:
            super().keyPressEvent(event)

    def _escape(self) -> None:
        if not self.state.is_writing and self.undo.dismiss():
            pass
        elif not self.page.find_bar.isHidden():
            self.page.find_bar.close_bar()
        elif self.panels.is_over():
            self.panels.close_over()
        elif self.state.is_writing:
            self.chats.stop()
        self.page.composer.field.setFocus()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.undo.place()

    def closeEvent(self, event: QCloseEvent) -> None:
        if self._must_ask and self.state.writing != "no" and not notices.confirm_quit(self):
            event.ignore()
            return
        self._remember()
        self.closing.emit()
        super().closeEvent(event)

    def close_unasked(self) -> None:
        self._must_ask = False
        self.close()

    # ---- geometry
    def _restore(self) -> None:
        settings = self._settings
        geometry = QByteArray.fromBase64(settings.window_geometry.encode("ascii", "ignore"))
        if geometry.isEmpty() or not self.restoreGeometry(geometry):
            free = QGuiApplication.primaryScreen().availableGeometry()
            self.resize(min(1200, free.width()), min(800, free.height()))
        self.panels.restore(
            sidebar=settings.sidebar_open,
            inspector=settings.inspector_open,
            widths={"sidebar": settings.sidebar_width, "inspector": settings.inspector_width},
        )

    def _remember(self) -> None:
        self.change_settings(
            replace(
                self._settings,
                window_geometry=bytes(self.saveGeometry().toBase64().data()).decode(),
                sidebar_width=self.panels.width_of("sidebar"),
                inspector_width=self.panels.width_of("inspector"),
                sidebar_open=self.panels.is_wanted("sidebar"),
                inspector_open=self.panels.is_wanted("inspector"),
            )
        )
