"""Downloads the source packages of a list, and keeps their files of the formats that the command reads. Builds and runs nothing.

    packages.py LIST DIR [wheel]

LIST has lines such as `h5py==3.16.0`; lines that start with # or [ are passed over. With `wheel`, wheels are taken, and
without it also where there is no source package. The files come to DIR/PACKAGE, with their paths in the package.
"""

import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

from corpus import EXTENSIONS
from pip._internal.commands import create_command
from pip._internal.network.download import Downloader

FORMS = {"source": "--no-binary", "wheel": "--only-binary"}


def download(requirement, directory, forms):
    """Downloads a package in the first form that it has. Returns its path."""
    name, version = requirement.split("==")
    for form in forms:
        command = create_command("download")
        options, _ = command.parse_args([FORMS[form], ":all:", name])
        with command.main_context():
            session = command.get_default_session(options)
            finder = command._build_package_finder(options, session, ignore_requires_python=True)
            for candidate in finder.find_all_candidates(name):
                if str(candidate.version) == version:
                    return Downloader(session, "off")(candidate.link, directory)[0]
    raise SystemExit(f"{requirement}: not found")


def members(path):
    """The names and bytes of the files of a package."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as package:
            for name in package.namelist():
                yield name, lambda name=name: package.read(name)
    else:
        with tarfile.open(path) as package:
            for member in package:
                if member.isfile():
                    yield member.name, lambda member=member: package.extractfile(member).read()


def main(packages, directory, forms):
    for requirement in packages.read_text().splitlines():
        folder = directory / requirement.split("==")[0]
        if not requirement or requirement[0] in "#[" or folder.exists():
            continue
        with tempfile.TemporaryDirectory(dir=directory) as scratch:
            new = Path(scratch) / "files"
            new.mkdir()
            for name, read in members(download(requirement, scratch, forms)):
                if PurePosixPath(name).suffix[1:] in EXTENSIONS and ".." not in PurePosixPath(name).parts:
                    (new / name).parent.mkdir(parents=True, exist_ok=True)
                    (new / name).write_bytes(read())
            new.rename(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:] or FORMS)
