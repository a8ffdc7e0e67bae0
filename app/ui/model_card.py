"""How it stands with the model, in a card: none, one that loads, one that is being added."""

from PySide6.QtCore import Signal

from app.ui.chat_state import ImportState, ModelState
from app.ui.controls import IconLabel, Label, Meter, Panel, box, button
from app.ui.theme import BODY, R_CARD, S3, SMALL

CARD_MARGINS = (S3 + 2, 11, S3 + 2, 11)


class ModelCard(Panel):
    """How it stands with the model; progress and a way to cancel where that takes time."""

    cancel_requested = Signal()
    open_requested = Signal()

    def __init__(self) -> None:
        super().__init__("accent_soft", None, R_CARD)
        self.setObjectName("model-card")
        self._icon = IconLabel("success", "accent", 20)
        self._title = Label("", BODY, "text", 600, wrap=True)
        self._text = Label("", SMALL, "muted", wrap=True)
        self._bar = Meter(0, "accent", None, 6)
        self.cancel = button("Cancel")
        self.open = button("Open a model file or folder…", "primary", None)
        self.cancel.setObjectName("cancel-import")
        self.open.setObjectName("open-first-model")
        words = box("v", self._title, self._text, self._bar, spacing=2)
        box(
            "h",
            self._icon,
            (words, 1),
            self.cancel,
            self.open,
            margins=CARD_MARGINS,
            spacing=S3,
            into=self,
        )
        self.cancel.clicked.connect(self.cancel_requested)
        self.open.clicked.connect(self.open_requested)

    def set_model(self, model: ModelState) -> None:
        if model.importing is not None:
            self._show_import(model.importing)
            return
        self._bar.hide()
        self.cancel.hide()
        self.open.setVisible(model.phase in ("none", "failed"))
        if model.phase == "ready":
            words = f"{model.context_length:,} tokens fit into one chat." * bool(
                model.context_length
            )
            self._say("success", f"{model.name} is ready", f"Runs on the {model.device}. {words}")
        elif model.phase == "loading":
            self._say("clock", f"{model.name} is loading", "You can write and send already.")
        elif model.phase == "failed":
            self._say("warning", "No model is loaded", "Choose another one to go on.")
        else:
            self._say(
                "model",
                "First, a model is needed",
                "Take a GGUF file of a Llama model, or a folder with a genai_config.json.",
            )

    def _show_import(self, importing: ImportState) -> None:
        text = "Cancelling" if importing.is_cancelling else importing.text
        self._say("import", f"Adding {importing.name}", f"{text}, {importing.share * 100:.0f} %")
        self._bar.set_share(importing.share)
        self._bar.show()
        self.cancel.show()
        self.cancel.setEnabled(not importing.is_cancelling)
        self.open.hide()

    def _say(self, icon: str, title: str, text: str) -> None:
        self._icon.set_icon(icon, "accent")
        self._title.setText(title)
        self._text.setText(text)
        self.setAccessibleName(f"{title}. {text}")
