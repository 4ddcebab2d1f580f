"""Plants a mutant when Python starts in a process that a test of the mutant starts."""

from tests.mutants.planted import plant_as_the_parent_did

plant_as_the_parent_did()
