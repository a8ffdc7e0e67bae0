"""Reads a window the way a screen reader does, for the end-to-end tests.

Run by the system's Python, which has the AT-SPI binding. One JSON request a line on stdin, one JSON
answer a line on stdout:
    {"pid": 123}                                   the elements of that process, in order
    {"pid": 123, "press": [0, 2, 1]}               does what a click on the element would do
    {"pid": 123, "write": [0, 2, 1], "text": "x"}  sets an editable text
An element is named by its path of child numbers.
"""

import json
import sys

import gi

gi.require_version("Atspi", "2.0")
from gi.repository import Atspi, GLib  # noqa: E402

STATES = {
    "showing": Atspi.StateType.SHOWING,
    "enabled": Atspi.StateType.ENABLED,
    "focused": Atspi.StateType.FOCUSED,
    "checked": Atspi.StateType.CHECKED,
}
DEEPEST = 24


def application(pid):
    desktop = Atspi.get_desktop(0)
    for number in range(desktop.get_child_count()):
        child = desktop.get_child_at_index(number)
        if child and child.get_process_id() == pid:
            child.clear_cache()
            return child
    return None


def element(accessible, path):
    can = accessible.get_interfaces()
    states = accessible.get_state_set()
    box = [0, 0, 0, 0]
    if "Component" in can:
        extents = accessible.get_extents(Atspi.CoordType.SCREEN)
        box = [extents.x, extents.y, extents.width, extents.height]
    return {
        "path": path,
        "role": accessible.get_role_name(),
        "name": accessible.get_name(),
        "description": accessible.get_description(),
        "id": accessible.get_accessible_id(),
        "text": Atspi.Text.get_text(accessible, 0, -1) if "Text" in can else "",
        "value": Atspi.Value.get_current_value(accessible) if "Value" in can else None,
        "box": box,
        "states": [name for name, state in STATES.items() if states.contains(state)],
    }


def elements(accessible, path):
    yield element(accessible, path)
    if len(path) < DEEPEST:
        for number in range(accessible.get_child_count()):
            child = accessible.get_child_at_index(number)
            if child:
                yield from elements(child, [*path, number])


def at(accessible, path):
    for number in path:
        accessible = accessible.get_child_at_index(number)
    return accessible


def answer(request):
    root = application(request["pid"])
    if root is None:
        return []
    if "press" in request:
        return at(root, request["press"]).get_action_iface().do_action(0)
    if "write" in request:
        target = at(root, request["write"]).get_editable_text_iface()
        return target.set_text_contents(request["text"])
    return list(elements(root, []))


Atspi.init()
for line in sys.stdin:
    try:
        reply = {"ok": answer(json.loads(line))}
    except GLib.Error as error:  # an element went away while it was read
        reply = {"gone": str(error)}
    print(json.dumps(reply), flush=True)
