mod truegold_driver {
    // What `{:?}` shows is read as a literal outside (`read_printed`), so that no type needs a form of its own.
    pub fn emit<T: std::fmt::Debug + ?Sized>(value: &T) {
        use std::io::Write;
        let shown: String = format!("{:?}", value).bytes().map(|byte| format!("{:02x}", byte)).collect();
        let _ = std::io::stdout().write_all(format!("\n\x01{{\"r\":\"{}\"}}\n", shown).as_bytes());
    }
}
