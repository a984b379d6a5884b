# The host of the operator.
{ on, me }:
on 4 {
  roles = [ "operator" ];
}
