"""The window: joins panels, menus and the two controllers. What it shows are others' widgets.

Holds no chat and no model itself. Adding a feature here is the moment to find its own file.
"""

import os
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QByteArray, QPoint, Qt, QUrl, Signal, Slot
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QCloseEvent,
    QDesktopServices,
    QGuiApplication,
    QKeyEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QApplication, QFileDialog, QMainWindow, QStackedWidget, QWidget

from app import paths
from app.settings import Settings
from app.ui import notices, theme
from app.ui.actions import FIXED_KEYS, Actions
from app.ui.areas import Area, go_round
from app.ui.chat_controller import ChatController
from app.ui.chat_page import ChatPage
from app.ui.chat_state import ChatState
from app.ui.drop_target import DropTarget
from app.ui.inspector import Inspector
from app.ui.items import Notice
from app.ui.message_actions import MessageActions
from app.ui.model_controller import ModelController
from app.ui.model_menu import ModelMenu
from app.ui.panels import Panels, Side
from app.ui.problem_page import ProblemPage
from app.ui.settings_dialog import SettingsDialog
from app.ui.sheet import Sheet
from app.ui.sidebar import APP_NAME, Sidebar
from app.ui.undo_toast import UndoToast

SMALLEST = (720, 480)
TEXT_STEP_PERCENT = 10


class MainWindow(QMainWindow):
    settings_changed = Signal(object)  # Settings
    closing = Signal()
    store_action = Signal(str)  # a way out of chats that can't be opened

    def __init__(self, settings: Settings, folders: paths.Folders) -> None:
        super().__init__()
        self._settings, self._folders = settings, folders
        self._chat: ChatController | None = None
        self._models: ModelController | None = None
        self._messages: MessageActions | None = None
        self._state = ChatState()
        self._must_ask = True
        self.setWindowTitle(APP_NAME)
        self.setMinimumSize(*SMALLEST)
        self.sidebar, self.page, self.inspector = Sidebar(), ChatPage(), Inspector()
        self.panels = Panels(self.sidebar, self.page, self.inspector)
        self.problem = ProblemPage()
        self.drops = DropTarget(self, self.page)
        self.undo = UndoToast(self, self.sidebar.models_row)
        self._pages = QStackedWidget()
        self._pages.addWidget(self.panels)
        self._pages.addWidget(self.problem)
        self.setCentralWidget(self._pages)
        self.actions_ = Actions(self)
        self.menuBar().setVisible(self.menuBar().isNativeMenuBar())
        self._connect_widgets()
        self._connect_actions()
        self._restore()
        self._on_panels()
        self._on_state(self._state)

    # ---- joining
    def open_chats(self, chat: ChatController, models: ModelController) -> None:
        """From now on the window shows these chats and models."""
        self._chat, self._models = chat, models
        page, sidebar = self.page, self.sidebar
        chat.items_reset.connect(page.set_items)
        chat.item_appended.connect(page.append)
        chat.item_replaced.connect(page.replace)
        chat.item_streamed.connect(page.stream)
        chat.scrolled_to.connect(page.scroll_to)
        chat.notice_changed.connect(page.set_notice)
        chat.composer_filled.connect(page.composer.set_text)
        chat.options_changed.connect(self.inspector.set_options)
        chat.chats_changed.connect(sidebar.set_chats)
        chat.state_changed.connect(self._on_state)
        chat.chat_deleted.connect(self._on_deleted)
        chat.announced.connect(self._announce)
        models.announced.connect(self._announce)
        models.state_changed.connect(chat.set_model_state)
        models.notice_raised.connect(chat.show_notice)
        models.about_to_load.connect(chat.stop)
        self._join_messages(chat)
        page.composer.sent.connect(chat.send)
        page.composer.draft_changed.connect(chat.change_draft)
        page.composer.stop_requested.connect(chat.stop)
        page.transcript.edited.connect(chat.edit)
        sidebar.chat_opened.connect(self._open_chat)
        sidebar.chat_renamed.connect(chat.rename_chat)
        sidebar.delete_requested.connect(chat.delete_chat)
        sidebar.searched.connect(chat.search)
        self.inspector.options_changed.connect(chat.change_options)
        page.first_run.cancel_requested.connect(models.cancel_import)
        page.composer.cancel_requested.connect(models.cancel_import)
        chat.set_send_with(self._settings.send_with)
        chat.set_model_state(models.state)
        chat.start()
        self._pages.setCurrentWidget(self.panels)
        self._on_state(chat.state)
        page.composer.field.setFocus()

    def _join_messages(self, chat: ChatController) -> None:
        """Chats may be opened anew, after an error: the actions belong to the newest."""
        old, self._messages = self._messages, MessageActions(chat, self.page.transcript, self)
        if old is not None:
            old.deleteLater()
        messages = self._messages
        self.page.message_action.connect(messages.act)
        messages.elsewhere.connect(self._on_notice_action)
        messages.announced.connect(self._announce)
        for name, slot in {
            "write_again": chat.write_last_again,
            "edit_last": messages.edit_last,
            "previous": messages.previous_version,
            "next": messages.next_version,
            "copy": messages.copy_answer,
        }.items():
            self.actions_[name].triggered.connect(slot)

    def show_problem(self, notice: Notice) -> None:
        """In place of the chats, when there are none to show."""
        self.problem.set_notice(notice)
        self._pages.setCurrentWidget(self.problem)
        self._on_state(replace(self._state, is_store_open=False))

    def _connect_widgets(self) -> None:
        actions, page, sidebar = self.actions_, self.page, self.sidebar
        sidebar.new_requested.connect(actions["new"].trigger)
        sidebar.hide_requested.connect(actions["sidebar"].trigger)
        sidebar.menu_requested.connect(self._show_menu)
        sidebar.models_requested.connect(self._show_models_at_row)
        sidebar.settings_requested.connect(actions["settings"].trigger)
        page.head.sidebar.clicked.connect(actions["sidebar"].trigger)
        page.head.new.clicked.connect(actions["new"].trigger)
        page.head.inspector.clicked.connect(actions["inspector"].trigger)
        page.composer.model_menu_requested.connect(self._show_models)
        page.composer.edit_last_requested.connect(actions["edit_last"].trigger)
        page.first_run.open_requested.connect(actions["open_model"].trigger)
        page.notice_action.connect(self._on_notice_action)
        page.transcript.link_activated.connect(self._open_link)
        self.problem.action.connect(self._on_notice_action)
        self.inspector.hide_requested.connect(actions["inspector"].trigger)
        self.panels.changed.connect(self._on_panels)
        self.drops.dropped.connect(self.open_model)
        self.undo.undone.connect(self._undo)

    def _connect_actions(self) -> None:
        for name, slot in {
            "new": self._new_chat,
            "rename": self._rename,
            "delete": self._delete,
            "undo": self._undo,
            "search": self._go_to_search,
            "settings": self._show_settings,
            "quit": self.close,
            "stop": self._stop,
            "sidebar": self._toggle_sidebar,
            "inspector": self._toggle_inspector,
            "options": self._go_to_options,
            "larger": self._larger,
            "smaller": self._smaller,
            "normal": self._normal,
            "next_area": self._next_area,
            "previous_area": self._previous_area,
            "message": self._go_to_message,
            "choose_model": self._show_models,
            "open_model": self._ask_for_model,
            "keys": self._show_keys,
            "data": self._show_data,
            "log": self._show_log,
            "about": self._show_about,
        }.items():
            self.actions_[name].triggered.connect(slot)

    # ---- following what is the case
    @Slot(object)
    def _on_state(self, state: ChatState) -> None:
        old, self._state = self._state, state
        self.page.set_state(state)
        self.drops.is_open = state.is_store_open
        if state.model.defaults != old.model.defaults:
            self.inspector.set_defaults(state.model.defaults)
        self.sidebar.set_device(_device_words(state.model.device or "CPU"))
        self.setWindowTitle(f"{state.title} - {APP_NAME}" if state.title else APP_NAME)
        has_chat = state.conversation_id is not None
        is_free = not state.is_writing
        self.actions_.enable(
            {
                "new": state.is_store_open,
                "rename": has_chat,
                "delete": has_chat,
                "undo": state.can_undo,
                "stop": state.is_writing and not state.is_stopping,
                "write_again": state.can_write_again,
                "edit_last": state.has_messages and is_free,
                "previous": state.has_messages and is_free,
                "next": state.has_messages and is_free,
                "copy": state.has_answer,
                "choose_model": state.is_store_open,
                "open_model": state.is_store_open,
            }
        )
        if self._models is not None and state.model.phase != old.model.phase:
            self.sidebar.set_model_count(len(self._models.folders()))

    @Slot()
    def _on_panels(self) -> None:
        sidebar, inspector = (self.panels.is_shown(side) for side in ("sidebar", "inspector"))
        self.page.head.set_panels(sidebar=sidebar, inspector=inspector)
        self.actions_["sidebar"].setChecked(sidebar)
        self.actions_["inspector"].setChecked(inspector)
        self.undo.place()

    @Slot(str)
    def _announce(self, text: str) -> None:
        if QAccessible.isActive():
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, text))

    # ---- chats
    @Slot()
    def _new_chat(self) -> None:
        if self._chat is not None:
            self._chat.new_chat()
            self._after_opening()

    @Slot(int)
    def _open_chat(self, chat_id: int) -> None:
        if self._chat is not None:
            self._chat.open_chat(chat_id)
            self._after_opening()

    def _after_opening(self) -> None:
        if self.panels.is_over():
            self.panels.close_over()
        self.page.composer.field.setFocus()

    @Slot()
    def _rename(self) -> None:
        if not self.panels.is_shown("sidebar"):
            self.panels.set_shown("sidebar", True)
        self.sidebar.rename_current()

    @Slot()
    def _delete(self) -> None:
        if self._chat is not None and self._state.conversation_id is not None:
            self._chat.delete_chat(self._state.conversation_id)
            self.page.composer.field.setFocus()

    @Slot()
    def _undo(self) -> None:
        self.undo.dismiss()
        if self._chat is not None:
            self._chat.undo_delete()

    @Slot(str)
    def _on_deleted(self, _title: str) -> None:
        self.undo.show("Chat deleted")
        self._announce("Chat deleted. Control Z brings it back.")

    @Slot()
    def _go_to_search(self) -> None:
        self.panels.set_shown("sidebar", True)
        self.sidebar.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.sidebar.search.selectAll()

    # ---- answers
    @Slot()
    def _stop(self) -> None:
        if self._chat is not None:
            self._chat.stop()

    # ---- models
    @Slot()
    def _show_models(self) -> None:
        self._open_model_menu(self.page.composer.model_chip, above=True)

    @Slot()
    def _show_models_at_row(self) -> None:
        self._open_model_menu(self.sidebar.models_row, above=True)

    def _open_model_menu(self, opener: QWidget, *, above: bool) -> None:
        if self._models is None:
            return
        entries = self._models.entries()
        self.sidebar.set_model_count(len(entries))
        menu = ModelMenu(entries)
        menu.chosen.connect(self._models.load)
        menu.open_requested.connect(self._ask_for_model)
        menu.closed.connect(menu.deleteLater)
        menu.open_from(opener, above=above)

    @Slot()
    def _ask_for_model(self) -> None:
        dialog = QFileDialog(self, "Open a model")
        dialog.setObjectName("open-model-dialog")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setNameFilters(["Models (*.gguf genai_config.json *.onnx)", "All files (*)"])
        dialog.fileSelected.connect(self.open_model)
        dialog.open()

    @Slot(str)
    def open_model(self, path: str) -> None:
        if self._models is not None:
            self._models.open(path)

    # ---- notices
    @Slot(str)
    def _on_notice_action(self, name: str) -> None:
        chat, models = self._chat, self._models
        if name in ("retry-store", "set-store-aside"):
            self.store_action.emit(name)
            return
        act = {
            "choose-model": self._show_models,
            "open-model": self._ask_for_model,
            "open-data": self._show_data,
            "open-log": self._show_log,
            "settings": self._show_settings,
            "send-again": self.page.composer.submit,
            "quit": self.close,
        }.get(name)
        if act is None and chat is not None and models is not None:
            act = {
                "reload-model": models.reload,
                "retry-save": chat.retry_save,
                "write-again": self._resend,
                "continue-in-new-chat": chat.continue_in_new_chat,
            }.get(name)
        if act is not None:
            act()

    @Slot()
    def _resend(self) -> None:
        """A message that came back is sent again, else the last answer is written again."""
        if self.page.composer.text().strip():
            self.page.composer.submit()
        elif self._chat is not None:
            self._chat.write_last_again()

    @Slot(object)
    def show_exception(self, error: Exception) -> None:
        """What nobody expected; the log has it."""
        if self._chat is not None:
            self._chat.show_notice(notices.uncaught(error))

    # ---- the window itself
    @Slot()
    def _show_menu(self) -> None:
        corner = self.sidebar.menu_button if self.sidebar.isVisible() else self.page.head
        self.actions_.popup.popup(corner.mapToGlobal(QPoint(0, corner.height())))

    @Slot()
    def _toggle_sidebar(self) -> None:
        self._toggle("sidebar")

    @Slot()
    def _toggle_inspector(self) -> None:
        self._toggle("inspector")

    def _toggle(self, side: Side) -> None:
        self.panels.toggle(side)
        self._on_panels()
        if self.panels.is_shown(side):
            if self.panels.is_over():
                is_list = side == "sidebar"
                (self.sidebar.list if is_list else self.inspector.options.prompt).setFocus()
        elif self.focusWidget() is None or not self.focusWidget().isVisible():
            self.page.composer.field.setFocus()

    @Slot()
    def _go_to_options(self) -> None:
        self.panels.set_shown("inspector", True)
        self.inspector.options.prompt.setFocus(Qt.FocusReason.ShortcutFocusReason)

    @Slot()
    def _go_to_message(self) -> None:
        self.page.composer.field.setFocus(Qt.FocusReason.ShortcutFocusReason)

    @Slot()
    def _next_area(self) -> None:
        self._go_round(1)

    @Slot()
    def _previous_area(self) -> None:
        self._go_round(-1)

    def _go_round(self, step: int) -> None:
        areas: list[Area] = [
            (self.sidebar, self.sidebar.list),
            (self.page.transcript, self.page.transcript),
            (self.page.first_run, self.page.first_run.nextInFocusChain()),
            (self.page.composer, self.page.composer.field),
            (self.inspector, self.inspector.options.prompt),
        ]
        go_round(areas, self.focusWidget(), step)

    @Slot()
    def _larger(self) -> None:
        self._scale_text(self._settings.text_scale_percent + TEXT_STEP_PERCENT)

    @Slot()
    def _smaller(self) -> None:
        self._scale_text(self._settings.text_scale_percent - TEXT_STEP_PERCENT)

    @Slot()
    def _normal(self) -> None:
        self._scale_text(100)

    def _scale_text(self, percent: int) -> None:
        percent = min(max(percent, theme.SMALLEST_SCALE), theme.LARGEST_SCALE)
        self.change_settings(replace(self._settings, text_scale_percent=percent))

    @Slot(object)
    def change_settings(self, settings: Settings) -> None:
        """What concerns the window acts at once; saving is up to who listens."""
        old, self._settings = self._settings, settings
        if settings == old:
            return
        self.settings_changed.emit(settings)
        if self._chat is not None:
            self._chat.set_send_with(settings.send_with)

    def settings(self) -> Settings:
        return self._settings

    @Slot()
    def restyle(self) -> None:
        """After the theme or the text size was applied."""
        self.page.restyle()
        self.sidebar.update()
        self.inspector.update()

    @Slot()
    def _show_settings(self) -> None:
        dialog = SettingsDialog(self._settings, self)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.changed.connect(self._on_settings_dialog)
        dialog.open()

    @Slot(object)
    def _on_settings_dialog(self, chosen: Settings) -> None:
        """Only what the dialog offers: the rest may have changed since it opened."""
        offered = SettingsDialog.offered(chosen)
        self.change_settings(replace(self._settings, **offered))

    @Slot()
    def _show_keys(self) -> None:
        self._open_sheet(Sheet("Keyboard shortcuts", [*FIXED_KEYS, *self.actions_.shortcuts()]))

    @Slot()
    def _show_about(self) -> None:
        pairs = [
            ("Version", QApplication.applicationVersion()),
            ("Licence", "MIT"),
            ("Data folder", str(self._folders.data)),
        ]
        text = "A private, offline chat with language models. Nothing leaves this computer."
        self._open_sheet(Sheet("About Inglenook", pairs, text))

    def _open_sheet(self, sheet: Sheet) -> None:
        sheet.setParent(self, Qt.WindowType.Dialog)
        sheet.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        sheet.open()

    @Slot()
    def _show_data(self) -> None:
        self._show_folder(self._folders.data)

    @Slot()
    def _show_log(self) -> None:
        self._show_folder(self._folders.logs)

    @staticmethod
    def _show_folder(folder: Path) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))

    @Slot(str)
    def _open_link(self, address: str) -> None:
        url = QUrl(address)
        if url.scheme() in ("http", "https", "mailto"):
            QDesktopServices.openUrl(url)

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
            self._show_menu()
        elif plain and event.text().isprintable() and event.text():
            self.page.composer.insert_text(event.text())
        else:
            super().keyPressEvent(event)

    def _escape(self) -> None:
        if not self._state.is_writing and self.undo.dismiss():
            pass
        elif self.panels.is_over():
            self.panels.close_over()
        elif self._state.is_writing:
            self._stop()
        self.page.composer.field.setFocus()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.undo.place()

    def closeEvent(self, event: QCloseEvent) -> None:
        if self._must_ask and self._state.is_writing and not notices.confirm_quit(self):
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
        geometry = QByteArray.fromBase64(settings.window_geometry.encode())
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


def _device_words(device: str) -> str:
    count = os.cpu_count() or 1
    return f"CPU, {count} core{'s' * (count != 1)}" if device.upper() == "CPU" else device
