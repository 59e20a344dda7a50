"""fsspec's own battery of tests for file systems."""

import pytest
import sluice
from fsspec.tests.abstract import AbstractFixtures
from fsspec.tests.abstract.copy import AbstractCopyTests
from fsspec.tests.abstract.get import AbstractGetTests
from fsspec.tests.abstract.open import AbstractOpenTests
from fsspec.tests.abstract.pipe import AbstractPipeTests
from fsspec.tests.abstract.put import AbstractPutTests
from sluice.filesystem import SluiceFileSystem


class Fixtures(AbstractFixtures):
    @pytest.fixture
    def fs(self):
        with sluice.Service({"store": "mem:"}) as service:
            yield SluiceFileSystem(service=service.uri, skip_instance_cache=True)

    @pytest.fixture
    def fs_path(self):
        return "/store"

    @pytest.fixture
    def supports_empty_directories(self):
        return True


class TestCopy(AbstractCopyTests, Fixtures):
    pass


class TestGet(AbstractGetTests, Fixtures):
    pass


class TestPut(AbstractPutTests, Fixtures):
    pass


class TestPipe(AbstractPipeTests, Fixtures):
    pass


class TestOpen(AbstractOpenTests, Fixtures):
    pass
