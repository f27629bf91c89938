"""Ask a Gatewright gate before a tool runs. Anything but a clear Allow means that the tool does not run.

    gate = Gate()  # GATEWRIGHT_URL, GATEWRIGHT_TOKEN_FILE and GATEWRIGHT_CA_FILE
    decision = gate.review("orders.refund", {"order_id": "5521"}, user_request="Refund order 5521, please.")
    if decision:
        refund(order_id="5521")
    else:
        tell_model(decision.for_model())

Python 3.10 or newer, standard library only.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import http.client
import inspect
import ipaddress
import json
import math
import os
import re
import socket
import ssl
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

API_VERSION = "review.gatewright.dev/v1alpha1"
KIND = "ToolCallReview"
PATH = "/v1alpha1/review"
DEFAULT_TIMEOUT = 12.0  # seconds; the gate itself decides in at most 10
MAX_REPLY = 1 << 20  # bytes; an answer is a few KiB
MAX_DEPTH = 64  # of what is sent
RETRY_PAUSE = 0.1  # seconds before the one retry, enough for another replica to take over

_OUTCOMES = ("Allow", "Clarify", "Confirm", "Block")
_MESSAGES = {
    "GateTimeout": "The gate did not answer in time.",
    "GateUnreachable": "The gate could not be reached.",
    "GateReplyTooLarge": "The gate's answer is too large.",
    "GateReplyMalformed": "The gate's answer could not be understood.",
    "GateReplyMismatch": "The gate's answer belongs to another request.",
    "GateUnknownOutcome": "The gate answered with an outcome that this client does not know.",
    "RequestNotSendable": "The call cannot be written as exact JSON: {detail}.",
    "ArgumentsChanged": "The arguments were changed while the gate decided.",
    "ClientMisconfigured": "The client of the gate is misconfigured: {detail}.",
    "ClientFailed": "The client of the gate failed.",
}
_REMEDIES = {"GateTimeout": "Retry", "GateUnreachable": "Retry", "RequestNotSendable": "ChangeArguments"}


@dataclass(frozen=True)
class Approval:
    """A call that waits for a person."""

    name: str
    expires_at: str = ""


@dataclass(frozen=True)
class Decision:
    """What the gate, or this client in its place, said about one call. It is true only if the tool may run."""

    allowed: bool = False
    outcome: str = "Block"
    reason: str = ""
    by: str = ""
    message: str = ""
    remedy: str = ""
    retryable: bool = False
    missing: tuple[str, ...] = ()
    approval: Approval | None = None
    permit: str = ""
    tool: str = ""
    uid: str = ""
    response: Mapping[str, Any] | None = None  # the whole answer, where the gate gave one

    def __bool__(self) -> bool:
        return self.allowed is True

    def for_model(self) -> str:
        """What the model should read in place of the tool's result."""
        if self.outcome == "Allow":
            return f"{self.tool} may run." if self.allowed else f"{self.tool} did not run: this was a dry run."
        return " ".join(filter(None, (f"{self.tool} did not run ({self.reason}).", self._sentence(), self._advice())))

    def _sentence(self) -> str:
        """The message with an end, so that what comes behind it is read apart."""
        return self.message if not self.message or self.message[-1] in ".!?…。！？" else self.message + "."

    def _advice(self) -> str:
        if self.outcome == "Clarify":
            missing = f" Missing: {', '.join(self.missing)}." if self.missing else ""
            return "Ask the user before you call it again." + missing
        if self.outcome == "Confirm":
            name = f" (approval {self.approval.name})" if self.approval else ""
            return (
                f"A person has to approve this very call first{name}. Tell the user that it is waiting and do not "
                "look for another way; once it is approved, call again with the same arguments."
            )
        if self.retryable:
            return "The same call may be tried again later."
        other = " A call with other arguments may be allowed." if self.remedy == "ChangeArguments" else ""
        return "Do not retry this call." + other


class ToolCallDenied(Exception):
    """A guarded tool did not run. Its text is what the model should read."""

    def __init__(self, decision: Decision):
        super().__init__(decision.for_model())
        self.decision = decision


current: contextvars.ContextVar[Decision | None] = contextvars.ContextVar("gatewright_current", default=None)
"""The decision under which a guarded function runs; it holds the permit for the tool's server."""


_About = Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None


class Gate:
    """A gate to ask. It keeps no state between calls; token and CA file are read again for each call."""

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        token_file: str | None = None,
        ca_file: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ):
        self._url = url or os.environ.get("GATEWRIGHT_URL", "")
        self._token = token
        self._token_file = token_file or os.environ.get("GATEWRIGHT_TOKEN_FILE", "")
        self._ca_file = ca_file or os.environ.get("GATEWRIGHT_CA_FILE", "")
        self._timeout = timeout

    def review(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        server: str = "",
        user_request: str = "",
        messages: Sequence[Mapping[str, str]] = (),
        facts: Mapping[str, Any] | None = None,
        session: str = "",
        on_behalf_of: str = "",
        language: str = "",
        attestation: str = "",
        approval: str = "",
        dry_run: bool = False,
    ) -> Decision:
        """Ask whether a call may run. Whatever goes wrong is a Decision that blocks, never an exception."""
        uid = _uuid7()
        context = {
            "userRequest": user_request,
            "messages": list(messages or ()),
            "facts": facts,
            "session": session,
            "onBehalfOf": on_behalf_of,
            "language": language,
            "attestation": attestation,
        }
        request = {
            "uid": uid,
            "tool": {"name": tool, **({"server": server} if server else {})},
            "arguments": arguments,
            "context": {key: value for key, value in context.items() if value},
            **({"approval": approval} if approval else {}),
            **({"dryRun": True} if dry_run else {}),
        }
        try:
            return self._ask(request)
        except _Closed as closed:
            return closed.decision(str(tool), uid)
        except Exception:  # a fault of this client is no reason to run a tool
            return _Closed("ClientFailed").decision(str(tool), uid)

    def guard(self, fn: Callable, *, tool: str, context: _About = None) -> Callable:
        """Wrap a function so that it runs only on Allow, and raises ToolCallDenied otherwise.

        The arguments under review are those given in the call, by their names. context holds review's keywords, or
        is a function that gives them for each call.
        """
        signature = inspect.signature(fn)
        if any(p.kind in (p.VAR_POSITIONAL, p.POSITIONAL_ONLY) for p in signature.parameters.values()):
            raise TypeError("a guarded function names all of its arguments")

        def permit(args: tuple, kwargs: dict) -> Decision:
            about = dict(context() if callable(context) else context or {})
            if about.get("dry_run"):
                raise TypeError("a guarded function runs or does not; use review for a dry run")
            decision = self.review(tool, _named(signature, args, kwargs), **about)
            if not decision:
                raise ToolCallDenied(decision)
            return decision

        if inspect.iscoroutinefunction(fn):

            @functools.wraps(fn)
            async def run_async(*args, **kwargs):
                token = current.set(await asyncio.to_thread(permit, args, kwargs))
                try:
                    return await fn(*args, **kwargs)
                finally:
                    current.reset(token)

            return run_async

        @functools.wraps(fn)
        def run(*args, **kwargs):
            token = current.set(permit(args, kwargs))
            try:
                return fn(*args, **kwargs)
            finally:
                current.reset(token)

        return run

    def _ask(self, request: dict[str, Any]) -> Decision:
        if type(request["tool"]["name"]) is not str or not isinstance(request["arguments"], dict):
            raise _Closed("RequestNotSendable", "a tool is named by text and its arguments are an object")
        body = _encode(request)
        call = _Call(self._target(), self._headers(), self._timeout, body)
        decision = _read(*call.run(), request)
        if _encode(request) != body:
            raise _Closed("ArgumentsChanged")
        return decision

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        token = self._token
        if token is None and self._token_file:
            try:
                with open(self._token_file, encoding="ascii") as file:
                    token = file.read(1 << 16).strip()
            except (OSError, ValueError):
                raise _Closed("ClientMisconfigured", "the token file cannot be read") from None
        if token is not None:
            if not re.fullmatch(r"[\x21-\x7e]+", token):
                raise _Closed("ClientMisconfigured", "the token is empty or holds more than one word")
            headers["Authorization"] = "Bearer " + token
        return headers

    def _target(self) -> _Target:
        if isinstance(self._timeout, bool) or not isinstance(self._timeout, (int, float)) or not 0.01 <= self._timeout <= 300:
            raise _Closed("ClientMisconfigured", "the time-out is not between 0.01 and 300 seconds")
        try:
            url = urlsplit(self._url)
            host, port = url.hostname or "", url.port
        except ValueError:
            raise _Closed("ClientMisconfigured", "the URL of the gate is not valid") from None
        plain = url.scheme == "http" and _is_loopback(host)
        if not host or not (plain or url.scheme == "https"):
            raise _Closed("ClientMisconfigured", "the gate is reached by https, or by http on this very machine")
        if url.username is not None or url.query or url.fragment:
            raise _Closed("ClientMisconfigured", "the URL of the gate holds more than host and path")
        path = f"{url.path.rstrip('/')}{PATH}?timeout={_seconds(self._timeout)}s"
        return _Target(host, port, path, None if plain else self._tls())

    def _tls(self) -> ssl.SSLContext:
        try:
            return ssl.create_default_context(cafile=self._ca_file or None)
        except (OSError, ValueError):
            raise _Closed("ClientMisconfigured", "the CA file cannot be read") from None


class _Closed(Exception):
    """A call that does not run because of what went wrong between caller and gate."""

    def __init__(self, reason: str, detail: str = "", *, message: str = "", retryable: bool | None = None):
        super().__init__(reason)
        self.reason = reason
        self.message = message or _MESSAGES[reason].format(detail=detail)
        self.remedy = "Retry" if retryable else _REMEDIES.get(reason, "AskAdmin")

    def decision(self, tool: str, uid: str) -> Decision:
        retryable = self.remedy == "Retry"
        return Decision(
            reason=self.reason, by="client", message=self.message, remedy=self.remedy, retryable=retryable, tool=tool, uid=uid
        )


@dataclass(frozen=True)
class _Target:
    host: str
    port: int | None
    path: str
    tls: ssl.SSLContext | None

    def connection(self, timeout: float) -> http.client.HTTPConnection:
        if self.tls is None:
            return http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        return http.client.HTTPSConnection(self.host, self.port, timeout=timeout, context=self.tls)


class _Call:
    """One exchange under one deadline. A socket's time-out bounds each step only, so a thread of its own does the
    exchange, and the caller stops waiting at the deadline, whether a name look-up hangs or bytes trickle in."""

    def __init__(self, target: _Target, headers: dict[str, str], timeout: float, body: bytes):
        self._target, self._headers, self._body = target, headers, body
        self._timeout, self._deadline = timeout, time.monotonic() + timeout
        self._done: tuple[int, bytes] | _Closed = _Closed("GateTimeout")
        self._connection: http.client.HTTPConnection | None = None

    def run(self) -> tuple[int, bytes]:
        """Give status and body, or raise _Closed."""
        thread = threading.Thread(target=self._exchange, name="gatewright", daemon=True)
        thread.start()
        thread.join(self._deadline - time.monotonic())
        if thread.is_alive():
            self._abandon()
            raise _Closed("GateTimeout")
        if isinstance(self._done, _Closed):
            raise self._done
        return self._done

    def _exchange(self) -> None:
        try:
            self._done = self._send()
        except _Closed as closed:
            self._done = closed
        except TimeoutError:
            self._done = _Closed("GateTimeout")
        except (OSError, http.client.HTTPException):
            self._done = _Closed("GateUnreachable")
        except Exception:
            self._done = _Closed("ClientFailed")

    def _send(self) -> tuple[int, bytes]:
        try:
            self._connect()
        except ConnectionRefusedError:  # nothing was sent, and the uid makes a repeat the same request
            time.sleep(min(RETRY_PAUSE, self._timeout / 4))
            self._connect()
        connection = self._connection
        try:
            connection.request("POST", self._target.path, self._body, self._headers)
            reply = connection.getresponse()
            return reply.status, self._read(reply)
        finally:
            connection.close()

    def _connect(self) -> None:
        self._connection = self._target.connection(max(0.001, self._deadline - time.monotonic()))
        self._connection.connect()

    @staticmethod
    def _read(reply: http.client.HTTPResponse) -> bytes:
        body = bytearray()
        while piece := reply.read(1 << 16):
            body += piece
            if len(body) > MAX_REPLY:
                if reply.status == 200:
                    raise _Closed("GateReplyTooLarge")
                return b""  # an error of any size is an error
        if reply.length:  # the connection ended before the announced length
            raise http.client.IncompleteRead(b"")
        return bytes(body)

    def _abandon(self) -> None:
        sock = getattr(self._connection, "sock", None)
        if sock is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def _read(status: int, body: bytes, request: dict[str, Any]) -> Decision:
    """Turn an answer into a decision. Only what is clearly an Allow for this very request becomes one."""
    if status != 200:
        code = _error_code(body)
        message = f"The gate answered HTTP {status}{f' ({code})' if code else ''}."
        raise _Closed("GateStatus", message=message, retryable=status == 429 or status >= 500)
    review = _parse(body)
    if not isinstance(review, dict) or review.get("apiVersion") != API_VERSION or review.get("kind") != KIND:
        raise _Closed("GateReplyMalformed")
    response = review.get("response")
    if not isinstance(response, dict):
        raise _Closed("GateReplyMalformed")
    texts = {key: _field(response, key, str, "") for key in ("uid", "outcome", "reason", "by", "message", "remedy", "permit")}
    approval, missing = _approval(response), _field(response, "missing", list, [])
    retryable = _field(response, "retryable", bool, False)
    if not all(isinstance(pointer, str) for pointer in missing):
        raise _Closed("GateReplyMalformed")
    if texts["uid"] != request["uid"]:
        raise _Closed("GateReplyMismatch")
    if texts["outcome"] not in _OUTCOMES:
        raise _Closed("GateUnknownOutcome")
    return Decision(
        allowed=texts["outcome"] == "Allow" and "dryRun" not in request,
        retryable=retryable,
        missing=tuple(missing),
        approval=approval,
        tool=request["tool"]["name"],
        response=response,
        **texts,
    )


def _field(of: dict[str, Any], key: str, kind: type, default: Any) -> Any:
    value = of.get(key)
    if value is None:
        return default
    if not isinstance(value, kind):
        raise _Closed("GateReplyMalformed")
    return value


def _approval(response: dict[str, Any]) -> Approval | None:
    approval = _field(response, "approval", dict, {})
    name = _field(approval, "name", str, "")
    return Approval(name, _field(approval, "expiresAt", str, "")) if name else None


def _parse(body: bytes) -> Any:
    try:
        return json.loads(body.decode("utf-8"), object_pairs_hook=_once, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise _Closed("GateReplyMalformed") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(of := dict(pairs)) != len(pairs):
        raise ValueError("a name is given twice")
    return of


def _refuse(_: str) -> None:
    raise ValueError("not a JSON number")


def _error_code(body: bytes) -> str:
    """The error's code, if it is a plain word; no other text of an error goes to a model."""
    try:
        code = _parse(body)["code"]
    except (_Closed, KeyError, TypeError, IndexError):
        return ""
    return code if isinstance(code, str) and re.fullmatch(r"[A-Za-z][A-Za-z0-9]{0,63}", code) else ""


def _encode(request: dict[str, Any]) -> bytes:
    review = {"apiVersion": API_VERSION, "kind": KIND, "request": request}
    _check(review, MAX_DEPTH + 4)
    try:
        return json.dumps(review, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    except (ValueError, TypeError):  # among them text that holds half of a surrogate pair
        raise _Closed("RequestNotSendable", "a value has no JSON form") from None


def _check(value: Any, depth: int) -> None:
    """Refuse what json would change on its way: names that are no text, subclasses, numbers that are not finite."""
    if depth == 0:
        raise _Closed("RequestNotSendable", "it is nested too deeply")
    kind = type(value)
    if kind is dict:
        if not all(type(key) is str for key in value):
            raise _Closed("RequestNotSendable", "a name is not text")
        for inner in value.values():
            _check(inner, depth - 1)
    elif kind in (list, tuple):
        for inner in value:
            _check(inner, depth - 1)
    elif kind is float and not math.isfinite(value):
        raise _Closed("RequestNotSendable", "a number is not finite")
    elif value is not None and kind not in (str, bool, int, float):
        raise _Closed("RequestNotSendable", "a value is of a type that JSON does not have")


def _named(signature: inspect.Signature, args: tuple, kwargs: dict) -> dict[str, Any]:
    named = dict(signature.bind(*args, **kwargs).arguments)
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            named.update(named.pop(parameter.name, {}))
    return named


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _seconds(timeout: float) -> str:
    """What the gate is given of the time-out: five sixths, so that its answer can still arrive."""
    milliseconds = int(timeout * 1000) * 5 // 6
    return f"{milliseconds / 1000:.3f}".rstrip("0").rstrip(".")


def _uuid7() -> str:
    """A UUID of version 7: 48 bits of Unix milliseconds, the rest random (RFC 9562)."""
    value = (time.time_ns() // 1_000_000 & (1 << 48) - 1) << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    return str(uuid.UUID(int=value & ~(0x3 << 62) | 0x2 << 62))
