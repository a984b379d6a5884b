{ base, merge, ... }:
merge base {
  trust.signingKeys = [ ];
  providers.config.hosts = [ "alpha" ];
}
