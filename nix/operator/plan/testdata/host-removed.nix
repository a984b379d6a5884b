{ base, ... }: {
  after = base // {
    hosts = removeAttrs base.hosts [ "beta" ];
    services = removeAttrs base.services [ "wiki" ];
    roles = base.roles // {
      reader.services = [ "auth" ];
    };
  };
}
