#!/usr/bin/env python3
"""sign_in.py ISSUER REDIRECT CLIENT SECRET EMAIL PASSWORD: signs a person in as a browser
and a service do (authorization code, PKCE), and prints the email that the service is told."""

import html
import json
import re
import sys
from base64 import b64encode, urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from http.cookiejar import CookieJar
from secrets import token_urlsafe
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit
from urllib.request import (
    HTTPCookieProcessor,
    HTTPRedirectHandler,
    Request,
    build_opener,
    urlopen,
)

issuer, redirect, client, secret, email, password = sys.argv[1:]


class Stop(HTTPRedirectHandler):
    """Follows redirects up to the one that leads back to the service."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):  # type: ignore[no-untyped-def]
        return None if newurl.startswith(redirect) else super().redirect_request(req, fp, code, msg, headers, newurl)


browser = build_opener(HTTPCookieProcessor(CookieJar()), Stop)
with urlopen(f"{issuer}/.well-known/openid-configuration") as answer:
    at = json.load(answer)

state, verifier = token_urlsafe(16), token_urlsafe(48)
challenge = urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()
begin = urlencode({"client_id": client, "redirect_uri": redirect, "response_type": "code", "scope": "openid email", "state": state,
                   "code_challenge": challenge, "code_challenge_method": "S256"})
with browser.open(f"{at['authorization_endpoint']}?{begin}") as page:
    text, here = page.read().decode(), page.url
action = re.search(r'<form[^>]*action="([^"]*)"', text)
there = urljoin(here, html.unescape(action[1])) if action else here
try:
    with browser.open(there, urlencode({"login": email, "password": password}).encode()) as page:
        said = re.sub(r"(<[^>]*>|\s)+", " ", page.read().decode())
        sys.exit(f"not signed in: {said[-200:]}")
except HTTPError as back:
    if back.code not in (302, 303):
        sys.exit(f"not signed in: {back}")
    came = parse_qs(urlsplit(back.headers["Location"]).query)
assert came["state"] == [state], came

form = {"grant_type": "authorization_code", "code": came["code"][0], "redirect_uri": redirect, "code_verifier": verifier}
basic = b64encode(f"{client}:{secret}".encode()).decode()
with urlopen(Request(at["token_endpoint"], urlencode(form).encode(), {"Authorization": f"Basic {basic}"})) as answer:
    claims = json.load(answer)["id_token"].split(".")[1]
print(json.loads(urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["email"])
