from __future__ import annotations

from collections.abc import Sequence

import pytest

from handrail.agent.messages import Assistant, Message, User
from handrail.agent.scripted import ScriptedModel
from handrail.errors import ModelError


def test_replies_come_in_order() -> None:
    model = ScriptedModel([Assistant("one"), Assistant("two")])
    assert [model.reply("", [], []).text for _ in range(2)] == ["one", "two"]
    assert model.used == 2


def test_a_function_makes_its_reply_from_the_conversation() -> None:
    def count(messages: Sequence[Message]) -> Assistant:
        return Assistant(f"{len(messages)} so far")

    assert ScriptedModel([count]).reply("", [User("a"), User("b")], []) == Assistant("2 so far")


@pytest.mark.parametrize("count", [0, 1, 3])
def test_running_out_says_how_many_were_used(count: int) -> None:
    model = ScriptedModel([Assistant("x")] * count)
    for _ in range(count):
        model.reply("", [], [])
    with pytest.raises(ModelError, match=f"all {count} replies were used"):
        model.reply("", [], [])


def test_the_script_is_fixed_when_the_model_is_made() -> None:
    replies = [Assistant("one")]
    model = ScriptedModel(replies)
    replies.clear()
    assert model.reply("", [], []).text == "one"
