"""Plants a mutant when Python starts in an environment that has one."""

from tests.mutants.planted import plant

plant()
