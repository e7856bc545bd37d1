//! An MCP server that offers bash and the task tools to any client.
