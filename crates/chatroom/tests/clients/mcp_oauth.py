"""Signs in with MCP's Python SDK, which finds its way from the refusal on: mcp_oauth.py SERVER ROOM PERSON_TOKEN. The
person who says yes on the page is a request with their identity token."""

import asyncio
import sys
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

server, room, person = sys.argv[1:]


class Memory(TokenStorage):
    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


answers: list[dict[str, list[str]]] = []


async def redirect(url: str) -> None:
    asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {person}"}) as http:
        page = await http.get(url)
        assert page.status_code == 200 and "authorize.js" in page.text, page.text
        said = await http.post(f"{server}/oauth/decision", json={**asked, "allow": True})
        assert said.status_code == 200, said.text
        answers.append(parse_qs(urlsplit(said.json()["redirect_to"]).query))


async def callback() -> AuthorizationCodeResult:
    answer = answers[-1]
    return AuthorizationCodeResult(code=answer["code"][0], state=answer["state"][0], iss=answer["iss"][0])


async def main() -> None:
    metadata = OAuthClientMetadata(
        client_name="A test", redirect_uris=["http://127.0.0.1:1/callback"],
        grant_types=["authorization_code", "refresh_token"], response_types=["code"],
        token_endpoint_auth_method="none",
    )
    auth = OAuthClientProvider(f"{server}/mcp", metadata, Memory(), redirect, callback)
    async with httpx2.AsyncClient(auth=auth, timeout=30) as http:
        async with Client(streamable_http_client(f"{server}/mcp", http_client=http)) as client:
            posted = await client.call_tool("post_message", {"room_id": room, "content": "hello"})
            assert not posted.is_error, posted
            rules = await client.call_tool("set_rules", {"room_id": room, "content": "Mine, so I may."})
            assert rules.structured_content["version"] == 1, rules
            print("signed in and posted as", posted.structured_content["via"])


asyncio.run(main())
