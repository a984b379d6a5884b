{ base, merge, ... }:
merge base {
  hosts.alpha.roles = [ "encoder" ];
  hosts.beta.capabilities = [ "gpu" ];
  services.wiki.roles = [ "encoder" ];
  services.blog = {
    host = "alpha";
    port = 1;
    roles = [ "encoder" ];
  };
  roles.encoder = {
    services = [ "wiki" ];
    requires = [ "gpu" ];
  };
}
