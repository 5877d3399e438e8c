//! libFuzzer's entry to `dpci_fuzz::intervals`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: dpci_fuzz::intervals::Input| dpci_fuzz::intervals::run(input));
