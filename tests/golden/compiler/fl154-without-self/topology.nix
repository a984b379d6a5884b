{ base, ... }: removeAttrs base [ "serial" ]
