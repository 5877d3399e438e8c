//! libFuzzer's entry to `dpci_fuzz::privacy`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: dpci_fuzz::privacy::Input| dpci_fuzz::privacy::run(input));
