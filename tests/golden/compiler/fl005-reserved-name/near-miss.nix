# Reserved roles and groups are there to be given a meaning.
{ base, merge, ... }:
merge base {
  services.florete-providers = {
    host = "beta";
    port = 1;
  };
  roles.node = { };
  roles.operator.services = [ "wiki" ];
  serviceGroups.control-plane = [ "wiki" ];
}
