
package truegold;
sub form {
    my ($value) = @_;
    return 'null' unless defined $value;
    return '[' . join(',', map { form($_) } @$value) . ']' if ref $value eq 'ARRAY';
    return '{"$":"dict","v":[' . join(',', map { '[' . form($_) . ',' . form($value->{$_}) . ']' } keys %$value) . ']}' if ref $value eq 'HASH';
    die 'a value of this type cannot be compared' if ref $value;
    return '"' . join('', map { sprintf '\\u%04x', ord } split //, "$value") . '"';
}
sub emit { print STDOUT "\n\x01{\"r\":", form($_[0]), "}\n" }
package main;
