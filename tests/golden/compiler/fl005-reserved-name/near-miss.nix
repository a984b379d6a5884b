# Reserved roles and groups that the topology defines.
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
