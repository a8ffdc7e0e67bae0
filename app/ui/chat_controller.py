"""What a person does with chats: the one face of it that the window knows.

Messages are here: sending, editing, writing again, versions. Joins the files of the other stories
and knows no widget. Each action is one method: write to the store, then show.
"""

import itertools
from functools import partial

from PySide6.QtCore import QObject, Slot

from app.chat.conversations import title_of
from app.chat.messages import Options
from app.store.records import MessageRecord, PartRecord
from app.store.store import Store, is_temporary
from app.ui.answer_writer import AnswerWriter, Beginning, Engine, Rows
from app.ui.attached_files import AttachedFiles
from app.ui.branches import Branches
from app.ui.chat_items import attachment_of, can_continue, options_to_details, text_of
from app.ui.chat_screen import ChatScreen
from app.ui.chat_search import ChatSearch
from app.ui.chats import Chats
from app.ui.compare_controller import CompareController
from app.ui.context_watch import ContextWatch
from app.ui.drafts import Drafts
from app.ui.exchanging import Exchanging
from app.ui.folders import Folders
from app.ui.items import Item
from app.ui.job import StoreJob
from app.ui.prompt_preview import PromptPreview
from app.ui.statistics import options_to_replay
from app.ui.temporary import Temporary
from app.ui.token_watch import TokenWatch

ALL = -1  # in place of a message where memory begins: at the one that is sent
PENDING = -1  # key of a message that is on its way to the store


class ChatController(ChatScreen):
    def __init__(
        self,
        store: Store,
        job: StoreJob,
        engine: Engine,
        request_ids: "itertools.count[int]",
        parent: QObject | None = None,
    ) -> None:
        super().__init__(store, job, parent)
        self._engine = engine
        self._drafts = drafts = Drafts(self)
        self._writer = writer = AnswerWriter(self, drafts, engine, request_ids)
        chats = Chats(self, drafts, writer)
        self.start, self.open_chat, self.new_chat = chats.start, chats.open, chats.new
        self.rename_chat, self.delete_chat = chats.rename, chats.delete
        self.restore_chat, self.undo_delete = chats.restore, self.undo
        self.delete_chat_for_good = chats.delete_for_good
        self.open_chat_at, self.delete_chats = chats.open_at, chats.delete_several
        self.empty_bin = chats.empty_bin
        self.folders, self.searching = Folders(self), ChatSearch(job, self)
        self.exchanging = Exchanging(self)
        self.branches = branches = Branches(self)
        branches.chat_copied.connect(chats.open)
        branches.chat_restored.connect(chats.show_again)
        self.compare = CompareController(self, engine, request_ids)
        self.show_chat_again = chats.show_again
        self.temporary = Temporary(self, chats)
        self.continue_in_new_chat = chats.continue_in_new_chat
        self.context = context = ContextWatch(self, engine, request_ids)
        context.draft = lambda: drafts.text
        self.files = AttachedFiles(self)
        context.files_text = lambda: self.files.prompt_text()
        self.items_reset.connect(context.look)
        self.state_changed.connect(context.follow)
        self.options_changed.connect(context.look)
        self.preview = PromptPreview(self, engine, request_ids, context.what)
        self.tokens = tokens = TokenWatch(self, engine, request_ids)
        self.items_reset.connect(tokens.look)
        self.state_changed.connect(tokens.follow)
        self.retry_save, self.settle = writer.retry_save, writer.settle
        self.set_model_state = writer.set_model_state

    @Slot(list)
    def on_events(self, events: list[object]) -> None:
        self._writer.on_events(events)
        self.context.on_events(events)
        self.compare.on_events(events)
        self.tokens.on_events(events)
        self.preview.on_events(events)

    @Slot()
    def stop(self) -> None:
        self.compare.stop()
        self._writer.stop()

    @Slot(str)
    def change_draft(self, text: str) -> None:
        self._drafts.change(text)
        self.context.look()

    def attach(self, files: AttachedFiles) -> None:
        """These go along with the next message."""
        self.files = files
        files.changed.connect(self.context.look)
        self.files_returned.connect(files.give_back)

    @Slot(str)
    def send(self, text: str) -> None:
        """Not before it is known to fit; else a notice says by how much it is too long."""
        text = text.strip()
        if (text or self.files.parts()) and self.state.can_send:
            again = partial(self.send, text)
            self.tokens.make_way()
            if self.context.may_send(text, again):
                self._send(text)

    def send_forgetting(self) -> None:
        """What stands in the field, with the oldest turns left out from now on."""
        cut, text = self.context.cut(), self._drafts.text.strip()
        if cut is None or not text or not self.state.can_send:
            return
        shown = self.here.branch()
        begins = shown[cut.first].id if cut.first < len(shown) else None
        self._send(text, cut=begins if begins is not None else ALL)

    def send_anyway(self) -> None:
        if (text := self._drafts.text.strip()) and self.state.can_send:
            self._send(text)

    def _send(self, text: str, *, cut: int | None = None) -> None:
        self.show_notice(None)
        answer = self._writer.new_answer(text)
        files = answer.sent_files = self.files.take()
        parts = (*files, PartRecord("text", text)) if text else files
        shown_files = tuple(attachment_of(part) for part in files)
        self.item_appended.emit(Item(PENDING, "user", text, is_last=True, attachments=shown_files))
        self._drafts.take()
        shown, leaf = self.shown, self.here.leaf_id
        options, model = self.options, answer.model
        title = title_of(text or files[0].details["name"])
        is_named_now = is_temporary(shown) and leaf is None
        if is_named_now:
            self.title = title

        def write(store: Store) -> Rows:
            conversation_id = shown
            if conversation_id is None:
                conversation_id = store.create_conversation(title, options_to_details(options))
            elif is_named_now:
                store.rename(conversation_id, title)
            user_id = store.add_user_message(conversation_id, leaf, parts)
            store.save_draft(shown, "")
            if cut is not None:
                store.set_memory_start(conversation_id, user_id if cut == ALL else cut)
            return Rows(
                conversation_id, store.start_answer(conversation_id, user_id, model), user_id
            )

        self._writer.begin(answer, write)

    @Slot(int)
    def write_again(self, key: int) -> None:
        """A new answer beside the one of `key`; for a question, its first or a further one."""
        record = self.here.record(key)
        if record is None or not self.state.can_write_again or self.shown is None:
            return
        self.show_notice(None)
        question = record.id if record.role == "user" else record.parent_id
        shown, answer = self.shown, self._writer.new_answer()

        def write(store: Store) -> Rows:
            return Rows(shown, store.start_answer(shown, question, answer.model))

        self._writer.begin(answer, write)

    @Slot(int)
    def continue_answer(self, key: int) -> None:
        """An answer that was cut off goes on where it stands; what stands is kept in any case."""
        record = self.here.record(key)
        if record is None or not can_continue(record) or not self.state.can_send:
            return
        if key != self.here.leaf_id:  # others followed it: it goes on beside itself
            self.write_from(key, self._beginning_of(record))
            return
        self.show_notice(None)
        answer = self._writer.new_answer(stood=record)

        def write(store: Store) -> Rows:
            store.reopen_answer(record.id)
            return Rows(record.conversation_id, record.id)

        self._writer.begin(answer, write, self._beginning_of(record))

    @Slot()
    def continue_last(self) -> None:
        if self.here.leaf_id is not None:
            self.continue_answer(self.here.leaf_id)

    def write_from(self, key: int, beginning: Beginning, options: Options | None = None) -> None:
        """An answer beside the one of `key` that begins in this way. `options` None: the chat's."""
        record = self.here.record(key)
        if record is None or record.role != "assistant" or not self.state.can_write_again:
            return
        self.show_notice(None)
        shown, answer = record.conversation_id, self._writer.new_answer()

        def write(store: Store) -> Rows:
            return Rows(shown, store.start_answer(shown, record.parent_id, answer.model))

        self._writer.begin(answer, write, beginning, options)

    @Slot(int)
    def replay(self, key: int) -> None:
        """The same options and seed once more: a version beside it, and whether it is the same."""
        record = self.here.record(key)
        options = options_to_replay(record) if record is not None else None
        if record is None or options is None or self.why_no_replay(record):
            return
        self.show_notice(None)
        shown, answer = record.conversation_id, self._writer.new_answer()
        answer.replays = record

        def write(store: Store) -> Rows:
            return Rows(shown, store.start_answer(shown, record.parent_id, answer.model))

        self._writer.begin(answer, write, options=options)

    def why_no_replay(self, record: MessageRecord) -> str:
        """Empty: it can be tried again."""
        if options_to_replay(record) is None:
            return "Its options were not kept, so it can't be tried again."
        if record.details.get("model_path") != self.state.model.path:
            return f"Choose {record.model} as the model to try it again."
        if not self.state.can_write_again:
            return "It can be tried again when nothing is written."
        return ""

    def _beginning_of(self, record: MessageRecord) -> Beginning:
        """Tokens mean something to the model that wrote them alone; another one gets the text."""
        path = record.details.get("model_path", self.state.model.path)
        is_same = record.model == self.state.model.name and path == self.state.model.path
        if is_same and record.token_ids:
            return Beginning(record.token_ids)
        return Beginning(text=text_of(record.parts))

    @Slot()
    def write_last_again(self) -> None:
        if self.here.leaf_id is not None:
            self.write_again(self.here.leaf_id)

    @Slot(int, str)
    def edit(self, key: int, text: str) -> None:
        """A changed question is a sibling of the old one, with an answer of its own; a changed
        answer is one too, and asks nothing of the model."""
        record, text = self.here.record(key), text.strip()
        if record is None or not text or self.state.is_writing or self.shown is None:
            return
        if record.role == "user" and not self.state.can_send:
            return
        if text == text_of(record.parts):
            return
        if record.role == "assistant":
            self.branches.edit_answer(record, text)
            return
        self.show_notice(None)
        shown, answer = self.shown, self._writer.new_answer()
        files = tuple(part for part in record.parts if part.kind == "file")

        def write(store: Store) -> Rows:
            parts = (*files, PartRecord("text", text))
            user_id = store.add_user_message(shown, record.parent_id, parts)
            return Rows(shown, store.start_answer(shown, user_id, answer.model), user_id)

        self._writer.begin(answer, write)

    @Slot(int, int)
    def switch_branch(self, key: int, step: int) -> None:
        """Shows the version before (-1) or after (+1) a message, with what followed it."""
        version = self.here.version(key, step)
        if version is None or self.shown is None or self.state.writing == "here":
            return
        self.here.show_version(version)
        self.show_items()
        self.scrolled_to.emit(version)
        self.update_state()
        leaf = self.here.leaf_id
        self.change(partial(Store.set_leaf, conversation_id=self.shown, message_id=leaf))

    @Slot(object)
    def change_options(self, options: Options) -> None:
        self._drafts.change_options(options)
        self.context.look()
        if self.answer is not None and self.state.writing == "here":
            self._engine.set_options(options)

    @Slot(str)
    def set_send_with(self, send_with: str) -> None:
        self.update_state(send_with=send_with)

    def prepare_quit(self) -> None:
        """Before the engine closes: nothing that is typed or written gets lost."""
        self._drafts.save()
        self._drafts.save_options()
        self.stop()
