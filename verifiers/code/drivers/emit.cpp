template <class T> void truegold_emit(const T& value) {
    truegold_driver::reply("\n\x01{\"r\":" + truegold_driver::Form<std::decay_t<const T>>::write(value) + "}");
}
