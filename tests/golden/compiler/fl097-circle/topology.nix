# Two teams, two roles, a role in itself, and two roles of a tenant.
{ base, merge, ... }:
merge base {
  teams.ops = {
    users = [ "ann" ];
    teams = [ "night" ];
    roles = [ "reader" ];
  };
  teams.night = {
    users = [ "ann" ];
    teams = [ "ops" ];
  };
  roles.reader.roles = [ "editor" ];
  roles.editor.roles = [ "reader" ];
  roles.itself.roles = [ "itself" ];
  providers.token = {
    hosts = [ "alpha" ];
    issuer = "https://tokens.example.org";
  };
  providers.jwt = {
    hosts = [ "alpha" ];
    issuer = "https://svids.example.org";
  };
  tenants.acme.groupings = [
    {
      member = "role:a";
      role = "role:b";
    }
    {
      member = "role:b";
      role = "role:a";
    }
    {
      member = "role:c";
      role = "role:a";
    }
  ];
  roles.alone = {
    services = [ "wiki" ];
    roles = [ "alone" ];
  };
}
