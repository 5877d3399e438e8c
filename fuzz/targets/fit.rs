//! libFuzzer's entry to `dpci_fuzz::fit`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: dpci_fuzz::fit::Input| dpci_fuzz::fit::run(input));
