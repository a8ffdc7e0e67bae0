"""The local server from the window: off until wanted, always to be seen, gone with the window."""

import http.client
import json
import socket
from dataclasses import replace
from typing import Any

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QAbstractButton, QLineEdit

from app.ui.server_card import ServerCard


def turn(desk: Any, is_on: bool, **changes: Any) -> None:
    settings = replace(desk.window.settings(), server_enabled=is_on, **changes)
    desk.window.change_settings(settings)


def ask(desk: Any, text: str) -> tuple[int, Any]:
    place = desk.window.server.address.removeprefix("http://").removesuffix("/v1")
    connection = http.client.HTTPConnection(place, timeout=20)
    body = json.dumps({"messages": [{"role": "user", "content": text}]})
    token = desk.window.settings().server_token
    connection.request("POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    found = json.loads(answer.read())
    connection.close()
    return answer.status, found


def test_nothing_listens_until_it_is_wanted(desk: Any) -> None:
    assert desk.window.server.address == ""
    assert desk.window.sidebar.server_row.isHidden()
    assert desk.window.settings().server_token == ""


def test_another_program_gets_an_answer_and_the_window_shows_it(desk: Any) -> None:
    turn(desk, True)
    assert not desk.window.sidebar.server_row.isHidden()
    desk.session.will_answer("From ", "the model.")
    status, found = ask(desk, "Hi")
    assert status == 200
    assert found["choices"][0]["message"]["content"] == "From the model."
    desk.until(lambda: "used 1 time" in desk.window.sidebar.server_row.accessibleName())
    assert desk.texts() == []  # it is nobody's chat
    assert desk.store.conversations() == []
    desk.ask("And here")
    assert desk.texts() == ["And here", "An answer."]


def test_off_means_that_nothing_listens(desk: Any) -> None:
    turn(desk, True)
    port = int(desk.window.server.address.removesuffix("/v1").rsplit(":", 1)[1])
    turn(desk, False)
    assert desk.window.sidebar.server_row.isHidden()
    with pytest.raises(ConnectionError):
        socket.create_connection(("127.0.0.1", port), timeout=5)


def test_a_taken_port_is_told(desk: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        turn(desk, True, server_port=port)
        assert desk.notice() is not None
        assert str(port) in desk.notice().text
        assert desk.window.server.address == ""
    turn(desk, True, server_port=0)
    assert desk.window.server.address


def test_a_new_token_ends_the_old_one(desk: Any) -> None:
    turn(desk, True)
    old = desk.window.settings().server_token
    desk.window.server.make_token()
    assert desk.window.settings().server_token not in ("", old)
    assert ask(desk, "Hi")[0] == 200
    desk.window.change_settings(replace(desk.window.settings()))
    now = desk.window.settings().server_token
    address = desk.window.server.address
    place = address.removeprefix("http://").removesuffix("/v1")
    connection = http.client.HTTPConnection(place, timeout=20)
    connection.request("GET", "/v1/models", headers={"Authorization": f"Bearer {old}"})
    assert connection.getresponse().status == 401
    connection.close()
    assert now != old


def test_the_card_gives_address_and_token(desk: Any) -> None:
    turn(desk, True)
    desk.window.actions_["server"].trigger()
    card = desk.window.findChildren(ServerCard)[-1]
    lines = {line.objectName(): line.text() for line in card.findChildren(QLineEdit)}
    assert lines == {
        "address": desk.window.server.address,
        "token": desk.window.settings().server_token,
    }
    copy = next(
        each
        for each in card.findChildren(QAbstractButton)
        if each.property("copies") == lines["token"]
    )
    copy.click()
    assert QGuiApplication.clipboard().text() == lines["token"]
    card.switch.click()
    desk.until(lambda: not desk.window.server.address)


def test_the_window_takes_it_along(open_desk: Any, folders: Any) -> None:
    desk = open_desk(folders)
    turn(desk, True)
    port = int(desk.window.server.address.removesuffix("/v1").rsplit(":", 1)[1])
    desk.window.close_unasked()
    desk.running.shut_down()
    with pytest.raises(ConnectionError):
        socket.create_connection(("127.0.0.1", port), timeout=5)
    again = open_desk(folders)
    again.until(lambda: again.window.server.address)
