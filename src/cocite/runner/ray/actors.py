"""What runs on a node, and what comes out of it: values, answers that are awaited, errors.

An error that cocite raises there on purpose is carried as a value, with its notes, and raised here
as itself: Ray would wrap it, and pickling forgets what some of them are made of. Where an answer is
an argument of another call, so is its error: it comes out of that one, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from cocite.errors import CociteError, LostWorker, ResourceError, TookTooLong
from cocite.extras import need

__all__ = ["Actor", "Answer", "Failed", "Held", "attempt", "library", "translated", "value_of"]

R = TypeVar("R")


def library() -> Any:
    """Ray; raises :class:`MissingLibrary` with the command that installs it."""
    return need("ray", "a cluster", "cluster")


@dataclass(frozen=True)
class Failed:
    """An error of ours, in what pickles: its class, arguments, attributes (notes among them)."""

    kind: type[CociteError]
    arguments: tuple[Any, ...]
    attributes: dict[str, Any]

    @classmethod
    def of(cls, error: CociteError) -> Failed:
        """What is left of it when it travels."""
        return cls(type(error), error.args, dict(vars(error)))

    def error(self) -> CociteError:
        """It, as it was."""
        found = self.kind.__new__(self.kind, *self.arguments)
        found.args = self.arguments
        vars(found).update(self.attributes)
        return found


def attempt(work: Callable[..., R], *arguments: Any) -> R | Failed:
    """What the work gives for the arguments, or an error of ours: of it, or of an argument."""
    for argument in arguments:
        if isinstance(argument, Failed):
            return argument
    try:
        return work(*arguments)
    except CociteError as error:
        return Failed.of(error)


def value_of(found: Any) -> Any:
    """What came, unless it is an error, which is raised."""
    if isinstance(found, Failed):
        raise found.error()
    return found


def translated(error: Exception) -> Exception:
    """What Ray says, in our tree; an error of the work that is not ours is that error."""
    ray = library()
    told = str(error).strip().partition("\n")[0]
    if isinstance(error, ray.exceptions.RayTaskError):
        cause = error.cause if isinstance(error.cause, Exception) else error
        lost = isinstance(cause, ray.exceptions.RayError) and cause is not error
        return translated(cause) if lost else cause  # of an answer that it was to be given
    if isinstance(error, ray.exceptions.GetTimeoutError):
        return TookTooLong("no answer came from the cluster in the time that was given")
    if isinstance(error, ray.exceptions.OutOfMemoryError | ray.exceptions.ObjectStoreFullError):
        return ResourceError(
            f"a node of the cluster ran out of memory: {told}. Give less --memory (memory=...) to "
            "a piece of work, or fewer --threads (threads=...), or take larger nodes"
        )
    if isinstance(error, ray.exceptions.RayError):
        return LostWorker(
            f"work on the cluster was lost, and doing it again did not help: {told}. See what "
            "cocite cluster status says of its nodes, and repeat the command"
        )
    return error


class Held:
    """The value that an actor holds, made where the actor is; called by the names of methods.

    Who relies on what earlier calls have left in the value marks it, and tells the mark at each
    call: one that was made anew has none, also if no call was under way when it was lost.
    """

    def __init__(self, kind: Callable[..., Any], *arguments: Any) -> None:
        self._value = attempt(kind, *arguments)
        self._mark: int | None = None

    def take_mark(self, mark: int) -> None:
        """Calls tell this mark from now on."""
        self._mark = mark

    def call(self, method: str, *arguments: Any, mark: int | None = None) -> Any:
        """``value.method(*arguments)``; :class:`LostWorker` if it does not have this ``mark``."""
        if isinstance(self._value, Failed):
            return self._value
        if mark is not None and mark != self._mark:
            return Failed.of(LostWorker("an actor was lost, and is there anew"))
        return attempt(getattr(self._value, method), *arguments)

    def call_for(self, parts: int, method: str, *arguments: Any, mark: int | None = None) -> Any:
        """The same of a method that gives so many values, each an answer of its own."""
        found = self.call(method, *arguments, mark=mark)
        if isinstance(found, Failed):
            return found if parts == 1 else [found] * parts
        values = list(found)
        return values[0] if parts == 1 else values


@dataclass(frozen=True)
class Answer(Generic[R]):
    """A value that is somewhere on the cluster, or on its way. It goes when nobody holds this any
    more. As an argument of a call it is the value itself, moved there by Ray.
    """

    reference: Any


@dataclass(frozen=True)
class Actor:
    """A value that lives on a node (:meth:`Cluster.actors`)."""

    handle: Any

    def mark(self, mark: int) -> None:
        """Have it take a mark, before any later call."""
        self.handle.take_mark.remote(mark)

    def call(self, method: str, *arguments: Any, mark: int | None = None) -> Answer[Any]:
        """Begin ``value.method(*arguments)`` there. Calls are done one after another, in the order
        in which they came; an :class:`Answer` among the arguments is waited for. It raises
        :class:`LostWorker` if the value does not have this ``mark``.
        """
        return Answer(self.handle.call.remote(method, *map(_sent, arguments), mark=mark))

    def call_for(
        self, parts: int, method: str, *arguments: Any, mark: int | None = None
    ) -> list[Answer[Any]]:
        """The same of a method that gives so many values: an answer for each of them."""
        call = self.handle.call_for.options(num_returns=parts)
        found = call.remote(parts, method, *map(_sent, arguments), mark=mark)
        return [Answer(each) for each in ([found] if parts == 1 else found)]

    def alive(self, seconds: float = 1.0) -> bool:
        """Whether it answers within so many seconds; one made anew, or at work, does not."""
        ray = library()
        try:
            ray.get(self.handle.__ray_ready__.remote(), timeout=seconds)
        except ray.exceptions.RayError:
            return False
        return True

    def kill(self, *, restart: bool = False) -> None:
        """End it at once, as a fault would if it is to ``restart``; it is gone if there is no
        connection any more, and Ray would make a cluster to look for it.
        """
        ray = library()
        if ray.is_initialized():
            ray.kill(self.handle, no_restart=not restart)


def _sent(argument: Any) -> Any:
    return argument.reference if isinstance(argument, Answer) else argument
