# The reserved roles need no definition.
{ base, merge, ... }: merge base {
  hosts.alpha.roles = [ "operator" "node" ];
  services.wiki.roles = [ "reader" ];
}
