{
  my $word = <STDIN>;
  do './FILE';
  die $@ if $@;
  print "\n$word";
}
