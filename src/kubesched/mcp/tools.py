"""The tools: which question each asks, the schema of what it takes and answers with, and the answer itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from kubesched.api.errors import UserError
from kubesched.ask.answers import PARTS, Skipped, answer
from kubesched.ask.output import document, plain, record_schema, schema_of
from kubesched.ask.pending import pending_pods
from kubesched.ask.releases.question import ReleaseQuestion
from kubesched.ask.service import QueryService
from kubesched.ask.sources.following import ClusterAge, Following
from kubesched.ask.targets import QuestionRequest
from kubesched.ask.what_if.what_if import WhatIfQuestion
from kubesched.framework.errors import PluginError
from kubesched.mcp.bounds import TRUNCATED, limit_size
from kubesched.mcp.overview import ClusterOverview, overview
from kubesched.mcp.words import in_words
from kubesched.planning.plan import Plan
from kubesched.planning.question import PlanQuestion
from kubesched.planning.solver import is_installed
from kubesched.serve.questions import CapacityQuestion, ExplainQuestion, FitQuestion, answer_to, name_pods

PATIENCE = 60.0
MOST_PENDING = 500


class PendingQuestion(QuestionRequest, frozen=True):
    """Which pods wait, for what, and what would help? In groups by cause."""

    remedies: bool = True
    """Whether to look for what would help each group."""
    most: Annotated[int, msgspec.Meta(ge=1, le=MOST_PENDING)] = 200
    """Of more pending pods, those first in the queue are looked at."""


class SnapshotQuestion(QuestionRequest, frozen=True):
    """What is the cluster like now: nodes by pool and zone, how full they are, how many pods wait?"""


@dataclass(frozen=True)
class Tool:
    """One tool."""

    question: type[QuestionRequest]
    kind: str
    parts: tuple[type, ...]
    ask: Callable[[Any, QueryService], Awaitable[dict[str, Any]]]

    @property
    def description(self) -> str:
        return " ".join((self.question.__doc__ or "").split())

    @property
    def input_schema(self) -> dict[str, Any]:
        """From the type of the question."""
        [_], components = msgspec.json.schema_components([self.question], ref_template="#/$defs/{name}")
        for schema in components.values():
            name_pods(schema)
        root = components.pop(self.question.__name__)
        return {**root, "$defs": components} if components else root

    @property
    def output_schema(self) -> dict[str, Any]:
        """From the types of the answer."""
        schema = schema_of(self.kind, self.parts)
        schema["properties"]["cluster"] = record_schema(ClusterAge)
        counts = {"type": "object", "additionalProperties": {"type": "integer"}}
        schema["properties"][TRUNCATED] = {**counts, "description": "How many items were cut off, by path."}
        return schema


async def _pending(question: PendingQuestion, service: QueryService) -> dict[str, Any]:
    age = service.age()
    pending = await service.ask_copy(
        lambda cluster: pending_pods(cluster, with_remedies=question.remedies, most=question.most)
    )
    return {**answer(pending, Skipped({})), "cluster": plain(age)}


async def _snapshot(question: SnapshotQuestion, service: QueryService) -> dict[str, Any]:
    age = service.age()
    return {**document("ClusterOverview", overview(service.cluster)), "cluster": plain(age)}


TOOLS = {
    "pending": Tool(PendingQuestion, "PendingPods", PARTS["PendingPods"], _pending),
    "explain": Tool(ExplainQuestion, "Explanation", PARTS["Explanation"], answer_to),
    "place": Tool(FitQuestion, "Fit", PARTS["Fit"], answer_to),
    "capacity": Tool(CapacityQuestion, "Capacity", PARTS["Capacity"], answer_to),
    "what_if": Tool(WhatIfQuestion, "WhatIf", PARTS["WhatIf"], answer_to),
    "compare_releases": Tool(ReleaseQuestion, "ReleaseComparison", PARTS["ReleaseComparison"], answer_to),
    "snapshot": Tool(SnapshotQuestion, "ClusterOverview", (ClusterOverview,), _snapshot),
}
"""By name. A further question is a further row."""
if is_installed():
    TOOLS["plan"] = Tool(PlanQuestion, "Plan", (Plan,), answer_to)


class ToolError(UserError):
    """Why there is no answer: what was wrong with the question, or that it took too long."""


async def call(
    name: str, arguments: dict[str, Any], service: QueryService, timeout: float = PATIENCE
) -> tuple[str, dict[str, Any]]:
    """The answer in words, and as a document of bounded size. Raises ToolError."""
    if name not in TOOLS:
        raise ToolError(f"there is no tool {name!r}; there are {', '.join(TOOLS)}")
    tool = TOOLS[name]
    try:
        question = msgspec.json.decode(msgspec.json.encode(arguments), type=tool.question)
        async with asyncio.timeout(timeout):
            if isinstance(service.feed, Following):
                await service.feed.wait_synced()
            result = await tool.ask(question, service)
    except TimeoutError:
        raise ToolError(f"{name}: took longer than {timeout:g} s") from None
    except msgspec.ValidationError as error:
        raise ToolError(f"{name}: {error}") from None
    except UserError as error:
        raise ToolError(*(f"{name}: {line}" for line in error.lines)) from None
    except PluginError as error:
        raise ToolError(f"{name}: {error}") from None
    return in_words(result), limit_size(result)
