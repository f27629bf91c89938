"""Downloads one file of a Python package without building it: sdist.py PACKAGE FILENAME SHA256 DESTINATION.

`pip download` runs the build of a source package to learn its dependencies; here only the bytes are wanted. The index is
the one that pip is configured for. The file is put in place only if it has the hash; whatever goes wrong is one line.
"""

import hashlib
import html.parser
import os
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request


def index_url() -> str:
    """The index as pip finds it: environment, configuration, and the one that pip itself comes with."""
    configured = os.environ.get("PIP_INDEX_URL") or subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True
    ).stdout.strip()
    if configured:
        return configured
    try:
        # Not a public part of pip, but the only place that names its default, which is not repeated here.
        from pip._internal.models.index import PyPI
    except ImportError:
        sys.exit("pip does not say which index it uses: set PIP_INDEX_URL")
    return PyPI.simple_url


class Links(html.parser.HTMLParser):
    """Collects where the links of a page lead to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.found += [value for name, value in attrs if name == "href" and value]


def address_of(package: str, filename: str) -> str:
    page = f"{index_url().rstrip('/')}/{package}/"
    links = Links()
    with urllib.request.urlopen(page, timeout=60) as answer:
        links.feed(answer.read().decode())
    for link in links.found:
        address = urllib.parse.urljoin(page, link)
        if urllib.parse.urlparse(address).path.endswith("/" + filename):
            return address.partition("#")[0]  # the rest is a hash of the index's own; the one that counts is pinned
    sys.exit(f"the index has no file {filename} of {package}")


def download(address: str, path: str) -> str:
    """Writes what is at an address to a file and returns its SHA-256."""
    found = hashlib.sha256()
    with urllib.request.urlopen(address, timeout=600) as answer, open(path, "wb") as out:
        while block := answer.read(1 << 20):
            found.update(block)
            out.write(block)
    return found.hexdigest()


def main() -> None:
    if len(sys.argv) != 5:
        sys.exit("usage: sdist.py PACKAGE FILENAME SHA256 DESTINATION")
    package, filename, want, destination = sys.argv[1:]
    part = destination + ".part"
    try:
        found = download(address_of(package, filename), part)
    except (urllib.error.URLError, OSError) as problem:
        sys.exit(f"{filename}: {problem}")
    if found != want:
        os.remove(part)
        sys.exit(f"{filename}: want sha256 {want}, found {found}")
    os.replace(part, destination)


main()
