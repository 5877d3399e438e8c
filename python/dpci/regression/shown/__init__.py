"""How a regression and its release are shown: as tables, as a page, and to an approver."""
