# Where the operator works.
{ on, me }:
on 4 {
  roles = [ "operator" ];
}
