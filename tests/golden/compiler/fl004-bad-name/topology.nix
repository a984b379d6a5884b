{
  base,
  key,
  merge,
  ...
}:
merge base {
  name = "Golden Cluster";
  trustDomain = "golden..flor";
  hosts."web.1" = {
    address = "192.0.2.3";
    sshHostKey = key "web";
  };
  services.Wiki = {
    host = "beta";
    port = 1;
  };
  services.service-name-that-leaves-no-room-for-its-prefixes-50x = {
    host = "beta";
    port = 2;
  };
  users."ann-" = { };
  hostGroups."eu/" = { };
  users."" = { };
  roles."read_er".services = [ "wiki" ];
  serviceGroups."a b" = [ "wiki" ];
}
