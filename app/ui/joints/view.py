"""What is seen: panels, text size, the round of the areas, settings."""

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, Qt, Slot

from app.settings import Settings
from app.ui import theme
from app.ui.areas import Area, go_round
from app.ui.chat_controller import ChatController
from app.ui.joints.joint import Joint
from app.ui.model_controller import ModelController
from app.ui.panels import Side
from app.ui.settings_dialog import SettingsDialog

TEXT_STEP_PERCENT = 10


if TYPE_CHECKING:
    from app.ui.main_window import MainWindow


class ViewJoint(Joint):
    def __init__(self, window: "MainWindow") -> None:
        super().__init__(window)
        actions, page, sidebar = window.actions_, window.page, window.sidebar
        sidebar.hide_requested.connect(actions["sidebar"].trigger)
        sidebar.menu_requested.connect(self.show_menu)
        sidebar.settings_requested.connect(actions["settings"].trigger)
        page.head.sidebar.clicked.connect(actions["sidebar"].trigger)
        page.head.inspector.clicked.connect(actions["inspector"].trigger)
        window.inspector.hide_requested.connect(actions["inspector"].trigger)
        window.panels.changed.connect(self._on_panels)
        window.settings_changed.connect(self._on_settings)
        for name, slot in {
            "settings": self._show_settings,
            "sidebar": self._toggle_sidebar,
            "inspector": self._toggle_inspector,
            "options": self._go_to_options,
            "larger": self._larger,
            "smaller": self._smaller,
            "normal": self._normal,
            "next_area": self._next_area,
            "previous_area": self._previous_area,
            "message": self._go_to_message,
        }.items():
            actions[name].triggered.connect(slot)

    def open(self, chat: ChatController, models: ModelController) -> None:
        super().open(chat, models)
        chat.set_send_with(self.window.settings().send_with)

    def act(self, name: str) -> bool:
        if name == "settings":
            self._show_settings()
        return name == "settings"

    @Slot(object)
    def _on_settings(self, settings: Settings) -> None:
        if self.chat is not None:
            self.chat.set_send_with(settings.send_with)

    # ---- panels
    @Slot()
    def _on_panels(self) -> None:
        window = self.window
        sidebar, inspector = (window.panels.is_shown(side) for side in ("sidebar", "inspector"))
        window.page.head.set_panels(sidebar=sidebar, inspector=inspector)
        window.actions_["sidebar"].setChecked(sidebar)
        window.actions_["inspector"].setChecked(inspector)
        window.undo.place()

    @Slot()
    def _toggle_sidebar(self) -> None:
        self._toggle("sidebar")

    @Slot()
    def _toggle_inspector(self) -> None:
        self._toggle("inspector")

    def _toggle(self, side: Side) -> None:
        window = self.window
        window.panels.toggle(side)
        self._on_panels()
        if window.panels.is_shown(side):
            if window.panels.is_over():
                is_list = side == "sidebar"
                (window.sidebar.list if is_list else window.inspector.focus_target()).setFocus()
        elif window.focusWidget() is None or not window.focusWidget().isVisible():
            window.page.composer.field.setFocus()

    @Slot()
    def show_menu(self) -> None:
        sidebar = self.window.sidebar
        corner = sidebar.menu_button if sidebar.isVisible() else self.window.page.head
        self.window.actions_.popup.popup(corner.mapToGlobal(QPoint(0, corner.height())))

    # ---- where the focus goes
    @Slot()
    def _go_to_options(self) -> None:
        self.window.inspector.choose_tab("options")
        self.window.panels.set_shown("inspector", True)
        self.window.inspector.options.prompt.setFocus(Qt.FocusReason.ShortcutFocusReason)

    @Slot()
    def _go_to_message(self) -> None:
        self.window.page.composer.field.setFocus(Qt.FocusReason.ShortcutFocusReason)

    @Slot()
    def _next_area(self) -> None:
        self._go_round(1)

    @Slot()
    def _previous_area(self) -> None:
        self._go_round(-1)

    def _go_round(self, step: int) -> None:
        page = self.window.page
        areas: list[Area] = [
            (self.window.sidebar, self.window.sidebar.list),
            (page.transcript, page.transcript),
            (page.first_run, page.first_run.nextInFocusChain()),
            (page.composer, page.composer.field),
            (self.window.inspector, self.window.inspector.focus_target()),
        ]
        go_round(areas, self.window.focusWidget(), step)

    # ---- text size and settings
    @Slot()
    def _larger(self) -> None:
        self._scale_text(self.window.settings().text_scale_percent + TEXT_STEP_PERCENT)

    @Slot()
    def _smaller(self) -> None:
        self._scale_text(self.window.settings().text_scale_percent - TEXT_STEP_PERCENT)

    @Slot()
    def _normal(self) -> None:
        self._scale_text(100)

    def _scale_text(self, percent: int) -> None:
        percent = min(max(percent, theme.SMALLEST_SCALE), theme.LARGEST_SCALE)
        window = self.window
        window.change_settings(replace(window.settings(), text_scale_percent=percent))

    @Slot()
    def _show_settings(self) -> None:
        dialog = SettingsDialog(self.window.settings(), self.window)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.changed.connect(self._on_settings_dialog)
        dialog.open()

    @Slot(object)
    def _on_settings_dialog(self, chosen: Settings) -> None:
        """Only what the dialog offers: the rest may have changed since it opened."""
        offered = SettingsDialog.offered(chosen)
        self.window.change_settings(replace(self.window.settings(), **offered))
