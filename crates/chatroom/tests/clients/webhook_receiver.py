"""Takes webhooks and checks them with the library of Standard Webhooks.

Prints its address, reads the secret from its standard input, and then prints a line of JSON for every delivery
that it takes. The first attempt of every third delivery it answers with 500, after it was checked.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks.webhooks import Webhook

checker = None
refused = set()
seen = []


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        status = 204
        try:
            event = checker.verify(body, dict(self.headers.items()))
        except Exception as error:  # The test reads what was wrong.
            event, status = {"type": "wrong", "data": str(error)}, 400
        id = self.headers["webhook-id"]
        if id not in seen:
            seen.append(id)
        if len(seen) % 3 == 0 and id not in refused:
            refused.add(id)
            status = 500
        else:
            print(json.dumps({"id": id, **event}), flush=True)
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
print(f"http://127.0.0.1:{server.server_port}/take", flush=True)
checker = Webhook(sys.stdin.readline().strip())
server.serve_forever()
