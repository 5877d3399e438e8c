//! libFuzzer's entry to `dpci_fuzz::samplers`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: dpci_fuzz::samplers::Input| dpci_fuzz::samplers::run(input));
