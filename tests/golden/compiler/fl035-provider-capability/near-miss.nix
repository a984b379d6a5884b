{ base, merge, ... }:
merge base {
  providers.cert = {
    hosts = [ "beta" ];
    requires = [ "hsm" ];
  };
  hosts.beta.capabilities = [ "hsm" ];
}
