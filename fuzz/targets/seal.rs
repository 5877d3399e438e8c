//! libFuzzer's entry to `dpci_fuzz::seal`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: dpci_fuzz::seal::Input| dpci_fuzz::seal::run(input));
