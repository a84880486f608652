"""The table of data sets is well formed."""

from coevo.datasets import sources


def test_every_source_is_well_formed():
    for name, source in sources.SOURCES.items():
        assert source.name == name
        paths = {file.path for file in source.files}
        for file in source.files:
            assert len(bytes.fromhex(file.sha256)) == 32
        for download in source.downloads:
            assert set(download.provides) <= paths
            assert all(address.startswith("https://") for address in download.addresses)
            assert all(address.endswith(f"/{download.name}") for address in download.addresses)
