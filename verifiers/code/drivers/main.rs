fn main() {
    truegold_driver::serve(COUNT, |given| {
LINES
        let mut out = String::new();
        truegold_driver::Form::write(&value.clone(), &mut out);
        Ok(out)
    });
}
