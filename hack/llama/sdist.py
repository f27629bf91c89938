"""Downloads one file of a Python package without building it: sdist.py PACKAGE FILENAME SHA256 DESTINATION.

`pip download` runs the build of a source package to learn its dependencies; here only the bytes are wanted. The index is
the one that pip is configured for.
"""

import hashlib
import html.parser
import os
import subprocess
import sys
import urllib.parse
import urllib.request


def index_url() -> str:
    configured = os.environ.get("PIP_INDEX_URL") or subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True
    ).stdout.strip()
    if configured:
        return configured
    from pip._internal.models.index import PyPI

    return PyPI.simple_url


class Links(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.found += [value for name, value in attrs if name == "href" and value]


def main() -> None:
    package, filename, want, destination = sys.argv[1:]
    page = f"{index_url().rstrip('/')}/{package}/"
    links = Links()
    with urllib.request.urlopen(page, timeout=60) as answer:
        links.feed(answer.read().decode())
    addresses = [urllib.parse.urljoin(page, link) for link in links.found]
    address = next((a for a in addresses if urllib.parse.urlparse(a).path.endswith("/" + filename)), None)
    if address is None:
        sys.exit(f"the index has no file {filename} of {package}")
    with urllib.request.urlopen(address.partition("#")[0], timeout=600) as answer:
        data = answer.read()
    found = hashlib.sha256(data).hexdigest()
    if found != want:
        sys.exit(f"{filename}: want sha256 {want}, found {found}")
    with open(destination + ".part", "wb") as out:
        out.write(data)
    os.replace(destination + ".part", destination)


main()
