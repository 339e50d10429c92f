"""Workspace identity on real directories and real git repositories."""

import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from lore.errors import Conflict, Invalid, NotFound
from lored.services import identity
from lored.services.workspaces import Workspaces
from lored.store.registry import Registry


def git(folder: Path, *arguments: str) -> None:
    environment = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_AUTHOR_NAME": "t",
        "GIT_AUTHOR_EMAIL": "t@example.org",
        "GIT_COMMITTER_NAME": "t",
        "GIT_COMMITTER_EMAIL": "t@example.org",
    }
    subprocess.run(
        ["git", *arguments], cwd=folder, env=environment, check=True, capture_output=True
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def repository(home: Path) -> Path:
    folder = home / "demo"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "start")
    return folder


async def opened(home: Path) -> tuple[Registry, Workspaces]:
    data = home / "data"
    registry = Registry(
        global_db=f"{data}/global.db",
        workspaces_dir=f"{data}/workspaces",
        sessions_db=f"{data}/sessions.db",
        backups_dir=f"{data}/backups",
    )
    await registry.open()
    workspaces = Workspaces(registry, str(home))
    await workspaces.load()
    return registry, workspaces


@pytest_asyncio.fixture
async def workspaces(home: Path) -> AsyncIterator[Workspaces]:
    registry, found = await opened(home)
    yield found
    await registry.close()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/home/dev/projects/demo", "dc6f59dfc940"),
        ("/srv/app", "05ddf75751b7"),
        ("/tmp/日本", "4670b3ed396d"),
    ],
)
def test_ids_are_those_of_recursive(path: str, expected: str) -> None:
    assert identity.workspace_id(path) == expected


async def test_git_subfolder_and_worktree_share_the_main_work_tree(
    repository: Path, workspaces: Workspaces
) -> None:
    (repository / "src").mkdir()
    tree = repository.parent / "demo-feature"
    git(repository, "worktree", "add", "-q", str(tree), "-b", "feature")
    (tree / "src").mkdir()
    main = await workspaces.resolve(str(repository / "src"))
    other = await workspaces.resolve(str(tree / "src"))
    assert main is not None and other is not None
    assert main.root == str(repository) and main.worktree is None
    assert other.id == main.id and other.worktree == str(tree)


async def test_worktrees_of_a_bare_repository_share_it(home: Path, workspaces: Workspaces) -> None:
    source, bare = home / "source", home / "bare.git"
    source.mkdir()
    git(source, "init", "-q")
    git(source, "commit", "-q", "--allow-empty", "-m", "start")
    git(home, "clone", "-q", "--bare", str(source), str(bare))
    git(bare, "worktree", "add", "-q", str(home / "one"), "-b", "one")
    git(bare, "worktree", "add", "-q", str(home / "two"), "-b", "two")
    one = await workspaces.resolve(str(home / "one"))
    two = await workspaces.resolve(str(home / "two"))
    assert one is not None and two is not None
    assert one.id == two.id and one.root == str(bare)


async def test_submodule_is_its_own_workspace(
    home: Path, repository: Path, workspaces: Workspaces
) -> None:
    part = home / "part"
    part.mkdir()
    git(part, "init", "-q")
    git(part, "commit", "-q", "--allow-empty", "-m", "start")
    git(repository, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(part), "part")
    found = await workspaces.resolve(str(repository / "part"))
    assert found is not None and found.root == str(repository / "part")


async def test_symlink_is_the_same_workspace(repository: Path, workspaces: Workspaces) -> None:
    link = repository.parent / "link"
    link.symlink_to(repository)
    one, two = await workspaces.resolve(str(link)), await workspaces.resolve(str(repository))
    assert one is not None and two is not None and one.id == two.id


async def test_another_spelling_of_the_same_directory_is_the_same_workspace(
    repository: Path, workspaces: Workspaces, home: Path
) -> None:
    """What a case-insensitive file system does: another path, same device and inode."""
    one = await workspaces.resolve(str(repository))
    found = identity.find(str(repository), barren=())
    assert one is not None and found is not None
    again = await workspaces._register(found._replace(root=str(home / "DEMO")))
    assert again.id == one.id and again.root == str(repository)


async def test_a_reused_inode_is_not_the_same_workspace(home: Path, workspaces: Workspaces) -> None:
    first = home / "first"
    first.mkdir()
    one = await workspaces.resolve(str(first))
    found = identity.find(str(first), barren=())
    assert found is not None and one is not None
    first.rmdir()
    second = home / "second"
    second.mkdir()
    two = await workspaces._register(found._replace(root=str(second)))
    assert two.id != one.id


async def test_recursive_folder_marks_a_workspace_but_not_in_home(
    home: Path, workspaces: Workspaces
) -> None:
    (home / ".recursive").mkdir()
    (home / "proj" / ".recursive").mkdir(parents=True)
    (home / "proj" / "deep" / "er").mkdir(parents=True)
    (home / "plain" / "deep").mkdir(parents=True)
    inside = await workspaces.resolve(str(home / "proj" / "deep" / "er"))
    plain = await workspaces.resolve(str(home / "plain" / "deep"))
    assert inside is not None and inside.root == str(home / "proj")
    assert plain is not None and plain.root == str(home / "plain" / "deep")


async def test_home_root_and_temporary_folders_are_never_one(
    home: Path, workspaces: Workspaces
) -> None:
    git(home, "init", "-q")  # dotfiles
    for path in (str(home), "/", "/tmp"):
        assert await workspaces.resolve(path) is None
        assert await workspaces.identify(path) is None
    (home / "notes").mkdir()
    found = await workspaces.resolve(str(home / "notes"))
    assert found is not None and found.root == str(home / "notes")


async def test_errors_name_the_path(workspaces: Workspaces, home: Path) -> None:
    with pytest.raises(Invalid, match="absolute"):
        await workspaces.resolve("demo")
    with pytest.raises(Invalid, match="does not exist"):
        await workspaces.resolve(str(home / "nowhere"))
    with pytest.raises(NotFound, match="ffffffffffff"):
        await workspaces.resolve("ffffffffffff")


async def test_sessions_of_gone_and_foreign_directories(
    repository: Path, workspaces: Workspaces, home: Path
) -> None:
    main = await workspaces.resolve(str(repository))
    assert main is not None
    assert await workspaces.identify(str(repository / ".worktrees" / "gone")) == main.id
    foreign = await workspaces.identify("D:\\oh-my-posh")
    assert foreign == identity.workspace_id("D:\\oh-my-posh")
    assert await workspaces.identify("D:\\oh-my-posh") == foreign
    gone = await workspaces.identify(str(home / "deleted" / "app"))
    assert gone == identity.workspace_id(str(home / "deleted" / "app"))


async def test_alias_and_split_survive_a_restart(repository: Path, home: Path) -> None:
    registry, workspaces = await opened(home)
    (repository / "part").mkdir()
    moved = home / "moved"
    moved.mkdir()
    main = await workspaces.resolve(str(repository))
    assert main is not None
    await workspaces.alias(str(moved), str(repository))
    part = await workspaces.split(str(repository / "part"))
    assert part.id != main.id
    await registry.close()
    registry, workspaces = await opened(home)
    again = await workspaces.resolve(str(moved))
    assert again is not None and again.id == main.id
    still = await workspaces.resolve(str(repository / "part"))
    assert still is not None and still.id == part.id
    with pytest.raises(Conflict, match="already"):
        await workspaces.alias(str(repository), main.id)
    await registry.close()
