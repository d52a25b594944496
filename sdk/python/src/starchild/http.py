"""Requests that are tried again while that may help and does no harm."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any, Optional

import httpx

from .errors import ApiError, Unreachable

FIRST_WAIT, LONGEST_WAIT, LONGEST_ASKED = 0.25, 30.0, 600.0
TRANSIENT = (429, 502, 503, 504)


class Backoff:
    """How long to wait before the next try: twice as long each time, with jitter."""

    def __init__(self) -> None:
        self._next = FIRST_WAIT

    def reset(self) -> None:
        self._next = FIRST_WAIT

    def wait(self, response: Optional[httpx.Response] = None) -> float:
        """The server's own Retry-After, where it gives one, is waited for."""
        wait = self._next * random.uniform(0.5, 1.0)
        self._next = min(self._next * 2, LONGEST_WAIT)
        asked = response.headers.get("retry-after", "") if response is not None else ""
        if not (asked.isascii() and asked.isdigit()):
            return wait
        return max(wait, min(float(asked), LONGEST_ASKED))


class Http:
    """One server, with one credential."""

    def __init__(self, server: str, token: str = "", *, patience: float = 120.0):
        self.server = server.rstrip("/")
        self.patience = patience
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.client = httpx.AsyncClient(base_url=self.server, headers=headers, timeout=30.0)

    async def close(self) -> None:
        await self.client.aclose()

    async def request(self, method: str, path: str, **options: Any) -> Any:
        """The answer's JSON. Give an Idempotency-Key to whatever must not happen twice."""
        end, backoff = time.monotonic() + self.patience, Backoff()
        while True:
            response, why = None, ""
            try:
                response = await self.client.request(method, path, **options)
            except httpx.TransportError as error:
                why = str(error) or type(error).__name__
            if response is not None and response.status_code not in TRANSIENT:
                return answer(response)
            wait = backoff.wait(response)
            if time.monotonic() + wait > end:
                if response is not None:
                    raise refusal(response)
                raise Unreachable(f"cannot reach {self.server}: {why}")
            await asyncio.sleep(wait)


def answer(response: httpx.Response) -> Any:
    if not response.is_success:
        raise refusal(response)
    try:
        return response.json()
    except ValueError:
        raise ApiError(response.status_code, "no_json", "the answer is no JSON; is the address right?") from None


def refusal(response: httpx.Response) -> ApiError:
    try:
        body = response.json()
        return ApiError(response.status_code, str(body["error"]), str(body["message"]))
    except (ValueError, KeyError, TypeError):
        return ApiError(response.status_code, "unknown", "the server gave no reason; is the address right?")
