//! libFuzzer's entry to `dpci_fuzz::rows`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: dpci_fuzz::rows::Input| dpci_fuzz::rows::run(input));
