# Secrets of connectors: one in the store, of no connector, and with nothing to have them beside.
{ flake, modules, ... }: {
  imports = [ modules.default ];
  services.florete = {
    cluster = flake;
    hostName = "drhorrible";
    provider = {
      settings.oidc.users = "/etc/florete/users.hujson";
      connectorSecrets.corp = "/nix/store/aaaa-ldap";
    };
  };
}
