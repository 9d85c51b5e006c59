"""Packages: the same bytes whoever builds them, and commands that work where nothing else is installed."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from tests.integration.clean_environment import ROOT, build, build_both, copy_sources, environment_for, install, pip
from tools import package_channels

from kubesched import __version__

pytestmark = [pytest.mark.slow, pytest.mark.live]
FILES = {
    f"{name}-{__version__}{end}"
    for name in ("kubesched", "kubesched_sandbox")
    for end in (".tar.gz", "-py3-none-any.whl")
}
WHEEL, SANDBOX_WHEEL = (f"{name}-{__version__}-py3-none-any.whl" for name in ("kubesched", "kubesched_sandbox"))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    return build_both(copy_sources(folder / "source"), folder / "dist")


@pytest.fixture(scope="module")
def scheduler(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with kubesched alone."""
    return install(tmp_path_factory.mktemp("scheduler") / "environment", built / WHEEL)


def run(environment: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    variables = {"PATH": f"{environment / 'bin'}:{os.environ['PATH']}", "HOME": str(environment), **variables}
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120, cwd=environment)


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_another_checkout_gives_the_same_bytes(built: Path, tmp_path: Path) -> None:
    source = copy_sources(tmp_path / "elsewhere" / "checkout")
    for number, file in enumerate(sorted(source.rglob("*"))):
        os.utime(file, (number * 1000, number * 1000))
        file.chmod(0o700 if file.is_dir() else 0o600)
    again = contents(build_both(source, tmp_path / "dist"))
    assert set(again) == FILES
    assert [name for name, content in contents(built).items() if content != again[name]] == []


def test_another_date_gives_other_bytes(built: Path, tmp_path: Path) -> None:
    build(copy_sources(tmp_path / "source"), tmp_path / "dist", epoch=1_600_000_000)
    assert (tmp_path / "dist" / WHEEL).read_bytes() != (built / WHEEL).read_bytes()


@pytest.mark.parametrize("wheel", [WHEEL, SANDBOX_WHEEL])
def test_the_source_distribution_gives_the_same_wheel(wheel: str, built: Path, tmp_path: Path) -> None:
    name = wheel.removesuffix("-py3-none-any.whl")
    with tarfile.open(built / f"{name}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    build(tmp_path / name, tmp_path / "dist", "wheel")
    assert (tmp_path / "dist" / wheel).read_bytes() == (built / wheel).read_bytes()


@pytest.mark.parametrize("command", ["kubesched", "kubectl-sched"])
def test_commands_work_with_what_is_required_and_nothing_else(command: str, scheduler: Path) -> None:
    assert run(scheduler, command, "--version").stdout == f"kubesched, version {__version__}\n"
    asked = run(scheduler, command, "place", "-f", str(ROOT / "examples" / "shop"))
    assert (asked.returncode, asked.stderr) == (0, "")
    missing = run(scheduler, "python", "-c", "import pytest")
    assert "No module named 'pytest'" in missing.stderr
    place = run(scheduler, "python", "-c", "import kubesched; print(kubesched.__file__)")
    assert Path(place.stdout).is_relative_to(scheduler)


def test_all_that_the_metadata_requires_is_there(scheduler: Path) -> None:
    assert "No broken requirements" in pip(scheduler, "check")


def test_what_comes_with_extras_is_named_where_it_is_missing(scheduler: Path) -> None:
    asked = {
        "mcp": run(scheduler, "kubesched", "mcp", "--release", "1.37"),
        "sandbox": run(scheduler, "kubesched", "sandbox"),
    }
    assert {name: done.returncode for name, done in asked.items()} == {"mcp": 2, "sandbox": 2}
    assert "extra `mcp`" in asked["mcp"].stderr
    assert "kubesched-sandbox" in asked["sandbox"].stderr


def test_the_page_about_installing_installs_both_from_a_checkout(tmp_path: Path) -> None:
    [line] = re.findall(r"^\$ pip (.+)$", (ROOT / "docs" / "installing.md").read_text(), re.MULTILINE)
    environment = environment_for(tmp_path / "environment", "kubesched", "hatchling")
    offline = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0"}  # 0 is pip's way to say no to it
    pip(environment, *shlex.split(line), cwd=copy_sources(tmp_path / "checkout"), **offline)
    assert run(environment, "kubesched", "--version").stdout == f"kubesched, version {__version__}\n"
    assert run(environment, "kubesched", "sandbox", "--help").returncode == 0


def test_the_sandbox_beside_it_is_a_command(built: Path, tmp_path: Path) -> None:
    environment = install(tmp_path / "environment", built / WHEEL, built / SANDBOX_WHEEL)
    told = run(environment, "kubesched", "sandbox", "--help")
    assert (told.returncode, told.stderr) == (0, "")
    assert "No broken requirements" in pip(environment, "check")
    assert (environment / "share" / "man" / "man1" / "kubesched-sandbox.1").exists()


@pytest.mark.skipif(shutil.which("man") is None, reason="needs man")
@pytest.mark.parametrize("page", ["kubesched", "kubectl-sched", "kubesched-explain"])
def test_man_finds_the_pages(page: str, scheduler: Path) -> None:
    shown = run(
        scheduler, "man", page, MANPATH=str(scheduler / "share" / "man"), MANPAGER="cat", LC_ALL="C", MANWIDTH="200"
    )
    assert shown.returncode == 0, shown.stderr
    assert "SYNOPSIS" in re.sub(".\b", "", shown.stdout)


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_groff_has_nothing_to_say_about_the_pages() -> None:
    pages = [str(page) for share in ("share", "sandbox/share") for page in (ROOT / share).rglob("kubesched*.1")]
    command = ["groff", "-man", "-ww", "-Tascii", "-rLL=200n", "-z", *pages]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_bash_completes_commands_and_flags(scheduler: Path) -> None:
    script = scheduler / "share" / "bash-completion" / "completions" / "kubesched"

    def completed(*words: str) -> set[str]:
        typed = " ".join(f"'{word}'" for word in words)
        lines = f"source {script}; COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _kubesched_completion kubesched"
        done = run(scheduler, "bash", "--norc", "-c", f'{lines}; printf "%s\\n" "${{COMPREPLY[@]}}"')
        return set(done.stdout.split())

    assert completed("kubesched", "ex") == {"explain"}
    assert completed("kubesched", "run", "--leader-elect-lease") == {"--leader-elect-lease-duration"}


def test_an_image_without_the_page_says_so_and_runs_all_else(built: Path, tmp_path: Path) -> None:
    environment = install(tmp_path / "environment", built / WHEEL)
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text()
    [removal] = re.findall(r'if \[ "\$PAGE" = no \]; then (.+?); fi', dockerfile)
    ui = ("kubesched", "ui", "-f", str(ROOT / "examples" / "shop"), "--help")
    assert run(environment, *ui).returncode == 0
    run(environment, "sh", "-c", removal.replace("/opt/kubesched", str(environment)))
    shown = run(environment, *ui)
    assert (shown.returncode, shown.stderr.count("\n")) == (2, 1)
    assert "web page" in shown.stderr
    flags = ("--master=http://127.0.0.1:1", "--ui-port=8999", "--secure-port=0", "--leader-elect=false")
    daemon = run(environment, "kubesched", "run", *flags)
    assert daemon.returncode == 1
    assert "Error: --ui-port: needs the web page" in daemon.stderr
    assert "Traceback" not in daemon.stderr
    assert run(environment, "kubesched", "place", "-f", str(ROOT / "examples" / "shop")).returncode == 0


def test_the_command_that_krew_installs_makes_its_environment_once(built: Path, tmp_path: Path) -> None:
    dist = tmp_path / "dist"
    shutil.copytree(built, dist)
    package_channels.write(dist, 1_700_000_000)
    with tarfile.open(dist / package_channels.ARCHIVE) as archive:
        archive.extractall(tmp_path / "store", filter="data")
    (tmp_path / "store" / "requirements.txt").write_text("")  # what they name is on PYTHONPATH: there is no network
    needed = environment_for(tmp_path / "needed", "kubesched")
    [packages] = (needed / "lib").glob("python*/site-packages")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "kubectl-sched").symlink_to(tmp_path / "store" / "kubectl-sched")
    command = (str(tmp_path / "bin" / "kubectl-sched"), "--version")
    variables = {"PYTHON": sys.executable, "PYTHONPATH": str(packages)}
    first, second = run(tmp_path, *command, **variables), run(tmp_path, *command, **variables)
    assert first.stdout == second.stdout == f"kubesched, version {__version__}\n"
    assert "once" in first.stderr
    assert second.stderr == ""


def test_the_command_that_krew_installs_takes_nothing_without_a_hash(built: Path, tmp_path: Path) -> None:
    shutil.copy(ROOT / "deploy" / "packages" / "kubectl-sched", tmp_path)
    (tmp_path / "requirements.txt").write_text(f"{built / WHEEL}\n")
    done = run(tmp_path, "./kubectl-sched", "--version", PYTHON=sys.executable, PIP_NO_INDEX="1")
    assert done.returncode != 0
    assert "Hashes are required" in done.stderr
    assert not (tmp_path / "environment" / "complete").exists()  # so that the next call begins again
