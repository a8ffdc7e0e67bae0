"""Help: keys, what this app is, its folders, and links that a person wants to open."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QUrl, Slot
from PySide6.QtGui import QCursor, QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QApplication, QWidget

from app.licences import packages
from app.logs import LOG_FILE
from app.report import report
from app.ui.actions import FIXED_KEYS, sending_keys
from app.ui.joints.joint import Joint
from app.ui.licences_view import LicencesView
from app.ui.link_card import LinkCard
from app.ui.log_view import LogView
from app.ui.manual import Manual
from app.ui.sheet import Sheet

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow


_MAIN = {"PySide6_Essentials", "onnxruntime", "onnxruntime-gpu"}


class HelpJoint(Joint):
    def __init__(self, window: "MainWindow") -> None:
        super().__init__(window)
        window.page.transcript.link_activated.connect(self.show_link)
        self._anchor = QWidget(window)  # where a link was pressed
        self._anchor.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._anchor.setFocusProxy(window.page.transcript)
        self._anchor.hide()
        for name, slot in {
            "manual": self._show_manual,
            "keys": self._show_keys,
            "data": self._show_data,
            "log": self._show_log,
            "about": self._show_about,
            "licences": self._show_licences,
        }.items():
            window.actions_[name].triggered.connect(slot)

    def act(self, name: str) -> bool:
        slot = {"open-data": self._show_data, "open-log": self._show_log}.get(name)
        if slot is not None:
            slot()
        return slot is not None

    @Slot()
    def _show_manual(self) -> None:
        manual = Manual(self.window)
        manual.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        manual.text.link_activated.connect(self._open_link)
        manual.show()

    @Slot()
    def _show_keys(self) -> None:
        sending = sending_keys(self.window.settings().send_with)
        keys = [*sending, *FIXED_KEYS, *self.window.actions_.shortcuts()]
        self._open_sheet(Sheet("Keyboard shortcuts", keys))

    @Slot()
    def _show_about(self) -> None:
        pairs = [
            ("Version", QApplication.applicationVersion()),
            ("Licence", "MIT"),
            *((package.name, package.version) for package in packages() if package.name in _MAIN),
            ("Data folder", str(self.window.folders.data)),
        ]
        text = "A private, offline chat with language models. Nothing leaves this computer."
        self._open_sheet(Sheet("About Inglenook", pairs, text))

    @Slot()
    def _show_licences(self) -> None:
        view = LicencesView(self.window)
        view.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        view.open()

    def _open_sheet(self, sheet: Sheet) -> None:
        sheet.setParent(self.window, Qt.WindowType.Dialog)
        sheet.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        sheet.open()

    @Slot()
    def _show_data(self) -> None:
        self._show_folder(self.window.folders.data)

    @Slot()
    def _show_log(self) -> None:
        view = LogView(self.window.folders.logs / LOG_FILE, self.window)
        view.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        view.copy_requested.connect(self._copy_report)
        view.folder_requested.connect(self._show_logs)
        view.show()

    @Slot()
    def _show_logs(self) -> None:
        self._show_folder(self.window.folders.logs)

    @Slot(list)
    def _copy_report(self, lines: list[str]) -> None:
        version, settings = QApplication.applicationVersion(), asdict(self.window.settings())
        QGuiApplication.clipboard().setText(report(version, settings, lines))
        self.window.announce("The report is copied")

    @staticmethod
    def _show_folder(folder: Path) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))

    @Slot(str)
    def show_link(self, address: str) -> None:
        """Of an answer: seen whole first, opened by another press."""
        at = self.window.mapFromGlobal(QCursor.pos())
        inside = self.window.rect().adjusted(8, 8, -8, -8)
        self._anchor.setGeometry(
            min(max(at.x(), inside.left()), inside.right()) - 4,
            min(max(at.y(), inside.top()), inside.bottom()) - 4,
            8,
            8,
        )
        self._anchor.show()
        card = LinkCard(address)
        card.opened.connect(self._open_link)
        card.closed.connect(card.deleteLater)
        card.closed.connect(self._anchor.hide)
        card.open_from(self._anchor)

    @Slot(str)
    def _open_link(self, address: str) -> None:
        url = QUrl(address)
        if url.scheme() in ("http", "https", "mailto"):
            QDesktopServices.openUrl(url)
