"""Uses the client that openapi-python-client made: generated_client.py SERVER TOKEN."""

import sys

from sc_chatroom_client import AuthenticatedClient, Client
from sc_chatroom_client.api.messages import get_rooms_by_id_messages, post_rooms_by_id_messages
from sc_chatroom_client.api.rooms import get_rooms, get_rooms_by_id, patch_rooms_by_id_rules, post_rooms
from sc_chatroom_client.models import CreateRoom, ErrorBody, PostMessage, UpdateText, Visibility

server, token = sys.argv[1:]
client = AuthenticatedClient(base_url=server, token=token)
room = post_rooms.sync(client=client, body=CreateRoom(name="generated", visibility=Visibility.PUBLIC))
assert room.name == "generated" and room.visibility == Visibility.PUBLIC, room
posted = post_rooms_by_id_messages.sync(room.room_id, client=client, body=PostMessage(content="from a generated client"))
assert posted.seq == 1 and posted.via == "agent", posted
rules = patch_rooms_by_id_rules.sync(room.room_id, client=client, body=UpdateText(content="Be kind."))
assert rules.version == 1, rules
page = get_rooms_by_id_messages.sync(room.room_id, client=client, since=0, limit=1)
assert [message.content for message in page.messages] == ["from a generated client"], page
assert room.room_id in [mine.room_id for mine in get_rooms.sync(client=client).rooms]
refused = get_rooms_by_id.sync_detailed(room.room_id, client=Client(base_url=server))
assert refused.status_code == 401, refused
refused = post_rooms.sync_detailed(client=client, body=CreateRoom(name=""))
assert refused.status_code == 400, refused
print("used")
