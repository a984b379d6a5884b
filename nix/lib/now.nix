# The time of an evaluation, which knows no clock: that of its documents.
# clean topology -> Unix seconds
clean: if clean.serial == null then clean.self.lastModified or 0 else clean.serial
