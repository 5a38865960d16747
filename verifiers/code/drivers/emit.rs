mod truegold_driver {
    // The verifier parses the output of `{:?}` as a literal (`read_printed`), so that every `Debug` type is supported.
    pub fn emit<T: std::fmt::Debug + ?Sized>(value: &T) {
        use std::io::Write;
        let shown: String = format!("{:?}", value).bytes().map(|byte| format!("{:02x}", byte)).collect();
        let _ = std::io::stdout().write_all(format!("\n\x01{{\"r\":\"{}\"}}\n", shown).as_bytes());
    }
}
